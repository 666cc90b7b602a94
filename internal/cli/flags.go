package cli

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
)

// The values of flags.
type (
	byteLimit = unit.Limit
	byteRate  = unit.Rate
	percent   = unit.Percent
	seconds   = unit.Duration
)

// exclusions lists flags that contradict each other in every command that has both: the first of a
// line excludes each of the others.
var exclusions = [][]string{
	{"rounds", "budget", "precision"},
	{"exhaustive", "budget", "precision"},
	{"count", "budget"},
	{"resume", "out"},
	{"full", "only"},
	{"per-host", "script", "expand"},
	{"every", "canary", "batch", "then-confirm", "wait-for-reboot", "dry-run"},
	{"detach", "every", "list", "dry-run", "no-record", "history"},
	{"stop", "rerun"},
	{"page", "stop", "rerun", "json", "status", "credential", "connect"},
	{"tty", "script", "stdin", "sudo"},
	{"delete", "no-verify"},
	{"for", "list", "stop", "refresh", "log", "ssh-config"},
	{"idle", "list", "stop", "refresh", "log", "ssh-config"},
	{"foreground", "list", "stop", "refresh", "log", "ssh-config"},
	{"undo", "write", "prove", "json", "out", "check", "strict", "policy", "include-insecure"},
}

// checkTogether refuses flags that contradict each other.
func checkTogether(flags *pflag.FlagSet) error {
	for _, line := range exclusions {
		for _, other := range line[1:] {
			if flags.Changed(line[0]) && flags.Changed(other) {
				return usageError("choose one of them", "--%s and --%s exclude each other", line[0], other)
			}
		}
	}
	return nil
}

// checkGiven refuses an empty value, as of an unset variable, for flags without which a copy or
// command would do less than it was asked to, and not fail.
func checkGiven(flags *pflag.FlagSet) error {
	for _, name := range []string{"sudo", "owner", "backup", "then"} {
		if f := flags.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return usageError("give it a value, or leave it out", "--%s is empty", name)
		}
	}
	return nil
}

// amounts are the counts and durations of all commands: an example, and whether 0 has a meaning,
// such as none or any.
var amounts = map[string]struct {
	such string
	zero bool
}{
	"budget": {"90s", false}, "canary": {"1", false}, "connections": {"200", false}, "connect-timeout": {"15s", false}, "count": {"20", false},
	"interval": {"0.2", false}, "precision": {"5%", false}, "rounds": {"3", false}, "size": {"64M", false}, "streams": {"4", false}, "top": {"5", false},
	"confirm-above": {"100", true}, "fanout": {"64", true}, "for": {"8h", false}, "idle": {"1h", false}, "loss": {"1%", true}, "every": {"10s", false}, "pause": {"1m", true}, "splay": {"5m", true}, "retry-for": {"2m", true}, "timeout": {"30s", true},
	"expires": {"24h", false}, "max-age": {"7d", false}, "max-bytes": {"4G", false}, "replicas": {"3", false}, "lease": {"30s", false},
	"max-output": {"64M", true}, "keep-output": {"1M", true}, "max-size": {"1G", true}, "max-delete": {"500", true}, "rate": {"10M", true},
}

// checkAmounts refuses counts and durations that are too small.
func checkAmounts(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		a, is := amounts[f.Name]
		value, known := amountOf(f.Value)
		if !is || !known || value > 0 || value == 0 && a.zero {
			return
		}
		least := "more than 0"
		if a.zero {
			least = "0 or more"
		}
		err = cmp.Or(err, usageError("such as --"+f.Name+" "+a.such, "--%s %s: want %s", f.Name, cmp.Or(f.Value.String(), "0"), least))
	})
	return err
}

// amountOf returns the number in a flag.
func amountOf(v pflag.Value) (n float64, known bool) {
	switch v := v.(type) {
	case *seconds:
		return time.Duration(*v).Seconds(), true
	case *percent:
		return float64(*v), true
	case *byteLimit:
		return float64(*v), true
	case *byteRate:
		return float64(*v), true
	}
	n, err := strconv.ParseFloat(v.String(), 64)
	return n, err == nil && v.Type() == "int"
}

// roundFlags are the flags for the duration of a measurement by rounds alone.
type roundFlags struct {
	rounds int
	budget seconds
}

func (f *roundFlags) register(flags *pflag.FlagSet, rounds int) {
	flags.IntVar(&f.rounds, "rounds", rounds, "number of complete rounds")
	flags.Var(&f.budget, "budget", "measuring time instead of --rounds, such as 90s: as many rounds as fit")
}

// of returns the rounds that the flags ask for. Fewer than least are an error.
func (f *roundFlags) of(least int) (sched.Rounds, error) {
	switch {
	case f.budget > 0:
		return sched.Rounds{Count: least, Budget: time.Duration(f.budget)}, nil
	case f.rounds < least || f.rounds > maxRepeats:
		return sched.Rounds{}, usageError("such as --rounds 10", "--rounds %d: want %d to %d", f.rounds, least, maxRepeats)
	}
	return sched.Rounds{Count: f.rounds}, nil
}

// connectTimeout is the default limit of a connection that somebody watches.
const connectTimeout = 10 * time.Second

// maxRepeats bounds --rounds: nobody waits for more.
const maxRepeats = 1_000_000

// progress reports steps on standard error, unless quiet.
func progress(sys System, quiet bool, before string) func(what string) {
	if quiet {
		return func(string) {}
	}
	return func(what string) { sys.screen().Tell(before + oneLine(what)) }
}

// given returns the values of the named flags, if they were given.
func given(flags *pflag.FlagSet, names []string) map[string][]string {
	words := map[string][]string{}
	for _, name := range names {
		if flag := flags.Lookup(name); flag == nil || !flag.Changed {
			continue
		} else if list, ok := flag.Value.(pflag.SliceValue); ok {
			words[name] = slices.Clone(list.GetSlice())
		} else {
			words[name] = []string{flag.Value.String()}
		}
	}
	return words
}

func setTo(flags *pflag.FlagSet, name string, words []string) error {
	flag := flags.Lookup(name)
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return list.Replace(words)
	}
	return flags.Set(name, strings.Join(words, ","))
}
