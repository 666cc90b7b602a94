//go:build linux

package cli

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/sys/relay"
	"sshpace/internal/sys/terminal"
)

// methodFlags are the flags that transfer and programs have in common: both move bytes in
// several ways, in turns.
type methodFlags struct {
	measureFlags
	only []string
	size byteLimit
	rtt  []string
	rate byteRate
	loss percent
	list bool
}

// register defines them.
func (m *methodFlags) register(flags *pflag.FlagSet) {
	m.measureFlags.register(flags, "random") // rsync, compression and disks are not the same with zeros
	flags.Var(&m.budget, "budget", "measuring time instead of --rounds, such as 90s: as many rounds as fit (default: 3 rounds)")
	flags.IntVar(&m.rounds, "rounds", 0, "measure so many complete rounds (default 3)")
	flags.Var(&m.size, "size", "bytes that each moves (default: what takes 0.7 s)")
	flags.StringSliceVar(&m.rtt, "rtt", nil, "round trip of the path to the private server, such as 50ms; several draw throughput over them: 0,20ms,100ms")
	flags.Var(&m.rate, "rate", "bytes per second of that path, such as 12M, 12MB/s or 100Mbit/s")
	flags.Var(&m.loss, "loss", "percentage of lost segments on that path")
	flags.BoolVar(&m.list, "list", false, "print what would be measured, and measure nothing")
}

// adopted opens the file that command goes on with, if there is one, and takes over what
// it says. The file may be anybody's: check sees it as it sees flags.
func (m *methodFlags) adopted(command string, flags *pflag.FlagSet, args *[]string) (*store.File, error) {
	file, err := m.reopen(command, args)
	if err != nil || file == nil {
		if !flags.Changed("seed") {
			m.seed = rand.Uint64N(1 << 53)
		}
		return nil, err
	}
	err = cmp.Or(keepPlan(flags), adoptWords(flags, file.Old.Campaign.Asked))
	m.adopt(flags.Changed, file.Old.Campaign)
	if err = cmp.Or(err, unfit(m.resume, m.check())); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// paths reads --rtt, --rate and --loss: one for each round trip; none where there
// is nothing to be made of a path.
func (m *methodFlags) paths() ([]relay.Path, error) {
	path := relay.Path{Rate: float64(m.rate), Loss: relay.Loss{Share: float64(m.loss) / 100}}
	if m.loss < 0 || m.loss > 50 {
		return nil, usageError("such as --loss 1", "--loss must be positive, and at most half of all segments can be lost")
	}
	if len(m.rtt) == 0 && path == (relay.Path{}) {
		return nil, nil
	}
	if len(m.rtt) == 0 {
		return []relay.Path{path}, nil
	}
	var paths []relay.Path
	for _, text := range m.rtt {
		var rtt seconds
		if err := rtt.Set(strings.TrimSpace(text)); err != nil || time.Duration(rtt) > longestTrip {
			return nil, usageError("such as --rtt 50ms or --rtt 0,20ms,100ms", "--rtt %q is no round trip of 0 to %s", text, longestTrip)
		}
		path.Delay = time.Duration(rtt) / 2
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// longestTrip bounds --rtt.
const longestTrip = 10 * time.Second

// Defaults of runs of methods.
const (
	defaultRounds = 3
	longRun       = 700 * time.Millisecond // that a long run is to take
	mostBytes     = 256 << 20              // of a long run: they are in memory
)

// turns is how methods are measured, as far as flags say it.
func (m *methodFlags) turns(file *store.File, view *terminal.Screen) transfer.Turns {
	t := transfer.Turns{Rounds: m.rounds, Budget: time.Duration(m.budget), Seed: m.seed, RunTime: longRun, Most: mostBytes, Size: int64(m.size)}
	if file != nil {
		t.Old = file.Old
	}
	switch {
	case t.Rounds > 0:
		t.Budget = 0
	case t.Budget == 0:
		t.Rounds = defaultRounds
	}
	if m.quiet {
		return t
	}
	total := fmt.Sprintf("of %d", t.Rounds)
	if t.Budget > 0 {
		total = "(" + t.Budget.String() + " in all)"
	}
	t.Told = func(method record.Method, round int) {
		line := fmt.Sprintf("round %d %s: %s", round, total, document.MethodLabel(method))
		if round == 0 {
			line = "trying " + document.MethodLabel(method)
		}
		if view.Width > 0 {
			_ = view.Draw(line)
		} else if round == 0 {
			fmt.Fprintln(view, line)
		}
	}
	return t
}

// listing is a list that t names the methods to, instead of measuring them.
func (m *methodFlags) listing(t *transfer.Turns) *[]item {
	items := &[]item{}
	t.List = func(method record.Method) { *items = append(*items, item{Name: document.MethodLabel(method)}) }
	return items
}

// campaign is the head of a result of methods.
func (m *methodFlags) campaign(command string, flags *pflag.FlagSet, target string, t transfer.Turns) record.Campaign {
	return record.Campaign{
		Command: command, Tool: toolVersion(), Seed: m.seed, Target: target, Directions: m.directions(), Data: m.data, Policy: m.policy,
		Rounds: t.Rounds, BudgetNS: t.Budget, Asked: asked(flags),
	}
}
