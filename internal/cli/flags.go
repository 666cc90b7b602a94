package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
)

// The values of flags.
type (
	byteLimit = unit.Limit
	percent   = unit.Percent
	seconds   = unit.Duration
)

// exclusions are flags that contradict each other in every command that has both: the
// first of a line, and what goes with none of it.
var exclusions = [][]string{
	{"rounds", "budget", "precision"},
	{"exhaustive", "budget", "precision"},
	{"count", "budget"},
	{"resume", "out"},
	{"full", "only"},
	{"undo", "write", "prove", "json", "check", "strict", "policy", "include-insecure"},
	{"history", "json"},
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

// roundFlags say how long something is measured that goes by rounds alone.
type roundFlags struct {
	rounds int
	budget seconds
}

func (f *roundFlags) register(flags *pflag.FlagSet, rounds int) {
	flags.IntVar(&f.rounds, "rounds", rounds, "measure so many complete rounds")
	flags.Var(&f.budget, "budget", "measuring time instead of --rounds, such as 90s: as many rounds as fit")
}

// of are the rounds, of which there must be so many at least.
func (f *roundFlags) of(least int) (sched.Rounds, error) {
	switch {
	case f.budget < 0:
		return sched.Rounds{}, usageError("such as 90s or 5m", "--budget must be longer than nothing")
	case f.budget > 0:
		return sched.Rounds{Count: least, Budget: time.Duration(f.budget)}, nil
	case f.rounds < least || f.rounds > maxRepeats:
		return sched.Rounds{}, usageError("such as --rounds 10", "--rounds %d: want %d to %d", f.rounds, least, maxRepeats)
	}
	return sched.Rounds{Count: f.rounds}, nil
}

// patience is how long a connection may take that somebody watches.
const patience = 10 * time.Second

// maxRepeats bounds --rounds: nobody waits for more.
const maxRepeats = 1_000_000

// progress tells on standard error what is being done, unless that is to be quiet.
func progress(sys System, quiet bool, format string) func(what string) {
	if quiet {
		return func(string) {}
	}
	return func(what string) { fmt.Fprintf(sys.Stderr, format, oneLine(what)) }
}

// given is what flags of these names say where they were given.
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

// setTo sets a flag to such words.
func setTo(flags *pflag.FlagSet, name string, words []string) error {
	flag := flags.Lookup(name)
	if list, ok := flag.Value.(pflag.SliceValue); ok {
		flag.Changed = true
		return list.Replace(words)
	}
	return flags.Set(name, strings.Join(words, ","))
}
