package cli

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/record"
)

// usual are flags as they are without any on the command line.
func usual() benchFlags {
	f := benchFlags{engine: "openssh"}
	f.direction, f.data, f.budget, f.connect = "upload", "zero", seconds(time.Minute), seconds(time.Second)
	return f
}

func TestChoices(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(f *benchFlags)
		host   bool
		want   string // "" for no error
	}{
		"usual":                {func(*benchFlags) {}, false, ""},
		"usual host":           {func(*benchFlags) {}, true, ""},
		"both":                 {func(f *benchFlags) { f.direction = "both" }, false, ""},
		"direction":            {func(f *benchFlags) { f.direction = "sideways" }, false, `--direction "sideways"`},
		"no direction":         {func(f *benchFlags) { f.direction = "" }, false, `--direction ""`},
		"data":                 {func(f *benchFlags) { f.data = "zero;id" }, false, `--data "zero;id"`},
		"engine":               {func(f *benchFlags) { f.engine = "putty" }, false, `--engine "putty"`},
		"server":               {func(f *benchFlags) { f.server = "dropbear" }, false, `--server "dropbear"`},
		"budget":               {func(f *benchFlags) { f.budget = seconds(-time.Second) }, false, "--budget"},
		"rounds":               {func(f *benchFlags) { f.rounds = -1 }, false, "--rounds"},
		"precision":            {func(f *benchFlags) { f.precision = -1 }, false, "--precision"},
		"precision NaN":        {func(f *benchFlags) { f.precision = percent(math.NaN()) }, false, "--precision"},
		"native on a host":     {func(f *benchFlags) { f.engine = "native" }, true, "--engine native"},
		"server on a host":     {func(f *benchFlags) { f.server = "openssh" }, true, "--server"},
		"no engine":            {func(f *benchFlags) { f.engine = "" }, false, ""},
		"too many rounds":      {func(f *benchFlags) { f.rounds = 9_000_000_000_000_000_000 }, false, "at most"},
		"random from a host":   {func(f *benchFlags) { f.data, f.direction = "random", "both" }, true, "/dev/urandom"},
		"random to a host":     {func(f *benchFlags) { f.data = "random" }, true, ""},
		"random from loopback": {func(f *benchFlags) { f.data, f.direction = "random", "download" }, false, ""},
		"exhaustive on a host": {func(f *benchFlags) { f.exhaustive = true }, true, "thousands of logins"},
	} {
		f := usual()
		tt.change(&f)
		err := f.sane(tt.host)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

// A flag that would do nothing is refused, whether its companion was given now or stands in the
// file that is resumed.
func TestIdleFlags(t *testing.T) {
	for name, tt := range map[string]struct {
		given  []string
		change func(f *benchFlags)
		host   bool
		want   string // "" for no error
	}{
		"none":               {nil, func(f *benchFlags) { f.exhaustive = true }, false, ""},
		"exhaustive, rounds": {[]string{"rounds", "size"}, func(f *benchFlags) { f.exhaustive = true }, false, ""},
		"size alone":         {[]string{"size"}, func(*benchFlags) {}, false, "--size"},
		"native with ssh":    {[]string{"ssh"}, func(f *benchFlags) { f.engine = "native" }, false, "--ssh"},
		"native with sshd":   {[]string{"sshd"}, func(f *benchFlags) { f.server = "native" }, false, "--sshd"},
		"sshd of a host":     {[]string{"sshd"}, func(*benchFlags) {}, true, "--sshd"},
		"ssh to a host":      {[]string{"ssh"}, func(*benchFlags) {}, true, ""},
	} {
		f := usual()
		tt.change(&f)
		flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		for _, name := range tt.given {
			flags.String(name, "", "")
			_ = flags.Set(name, "x")
		}
		err := checkIdle(flags, f.idle(tt.host))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want+" has no meaning here")) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestPercent(t *testing.T) {
	for text, want := range map[string]string{"4": "4", "4%": "4", "0.5%": "0.5"} {
		var p percent
		if err := p.Set(text); err != nil || p.String() != want {
			t.Errorf("%q: %s, %v", text, p.String(), err)
		}
	}
	for _, text := range []string{"", "%", "4%%", "four"} {
		if err := new(percent).Set(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// A result file may come from anywhere: what it says must not reach a command line, and must not
// crash.
func TestAdoptChecksTheFile(t *testing.T) {
	good := record.Campaign{Format: record.FormatVersion, Target: "loopback", Engine: "openssh", Server: "openssh", Data: "zero", Directions: []record.Direction{record.Download}, BudgetNS: 10 * time.Minute}
	none := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	for name, change := range map[string]func(c *record.Campaign){
		"data":          func(c *record.Campaign) { c.Data = "zero; touch pwned #" },
		"engine":        func(c *record.Campaign) { c.Engine = "/bin/sh" },
		"server":        func(c *record.Campaign) { c.Server = "x" },
		"direction":     func(c *record.Campaign) { c.Directions = []record.Direction{"$(id)"} },
		"no directions": func(c *record.Campaign) { c.Directions = nil },
		"rounds":        func(c *record.Campaign) { c.Rounds = -3 },
		"precision":     func(c *record.Campaign) { c.Precision = -3 },
		"precision NaN": func(c *record.Campaign) { c.Precision = math.NaN() },
	} {
		f, c := usual(), good
		change(&c)
		if err := f.adopt(none, c, false); err == nil {
			t.Errorf("%s: adopted", name)
		}
	}
	f := usual()
	if err := f.adopt(none, good, false); err != nil || f.direction != "download" || f.budget != seconds(10*time.Minute) {
		t.Errorf("adopt: %+v, %v", f, err)
	}
}

// A resumed run ends as the file has it, unless the user says it anew.
func TestAdoptEnd(t *testing.T) {
	timed := record.Campaign{Target: "loopback", Data: "zero", Directions: []record.Direction{record.Upload}, BudgetNS: 10 * time.Minute, Precision: 2}
	rounds := timed
	rounds.BudgetNS, rounds.Precision, rounds.Rounds = 0, 0, 5
	type end struct {
		budget    time.Duration
		rounds    int
		precision percent
	}
	for name, tt := range map[string]struct {
		argv []string
		file record.Campaign
		want end
	}{
		"time":            {nil, timed, end{10 * time.Minute, 0, 2}},
		"longer":          {[]string{"--budget", "20m"}, timed, end{20 * time.Minute, 0, 2}},
		"blocks":          {nil, rounds, end{time.Minute, 5, 0}},
		"more blocks":     {[]string{"--rounds", "7"}, rounds, end{time.Minute, 7, 0}},
		"time for blocks": {[]string{"--budget", "2m"}, rounds, end{2 * time.Minute, 0, 0}},
		"blocks for time": {[]string{"--rounds", "7"}, timed, end{time.Minute, 7, 2}},
		"more precise":    {[]string{"--precision", "1"}, timed, end{10 * time.Minute, 0, 1}},
	} {
		f := usual()
		flags := pflag.NewFlagSet("bench", pflag.ContinueOnError)
		flags.Var(&f.budget, "budget", "")
		flags.IntVar(&f.rounds, "rounds", 0, "")
		flags.Var(&f.precision, "precision", "")
		if err := flags.Parse(tt.argv); err != nil {
			t.Fatal(err)
		}
		if err := f.adopt(flags, tt.file, false); err != nil {
			t.Fatal(err)
		}
		if got := (end{time.Duration(f.budget), f.rounds, f.precision}); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}
