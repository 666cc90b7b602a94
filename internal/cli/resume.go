//go:build linux

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/record"
)

// keepPlan refuses flags that a resumed run has from its file.
func keepPlan(flags *pflag.FlagSet) error {
	changeable := []string{"resume", "budget", "rounds", "precision", "connections", "json", "quiet", "out", "list", "all", "ssh", "sshd", "name", "connect-timeout"}
	connection := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(connectionFlags).register(connection)
	var err error
	flags.Visit(func(flag *pflag.Flag) {
		if err == nil && !slices.Contains(changeable, flag.Name) && connection.Lookup(flag.Name) == nil {
			err = usageError("leave it out: a resumed run keeps its plan; only --budget, --rounds and --precision may change", "--%s with --resume", flag.Name)
		}
	})
	return err
}

// asking lists the flags that select transfer methods.
var asking = []string{"only", "cipher", "mac", "kex", "size", "streams", "compression", "files", "dir", "remote-dir", "rtt", "rate", "loss"}

// adoptWords sets flags to the words of a file.
func adoptWords(flags *pflag.FlagSet, asked map[string][]string) error {
	for name, words := range asked {
		if !slices.Contains(asking, name) || flags.Lookup(name) == nil {
			return usageError("start a new result", "the file was made with --%s, which does not apply here", name)
		}
		if err := setTo(flags, name, words); err != nil {
			return usageError("start a new result", "the file says --%s %s", name, strings.Join(words, ","))
		}
	}
	return nil
}

// adopt takes the fixed values of a resumed run from its file. The file may come from anybody: its
// values pass the same checks as the flags.
func (f *measureFlags) adopt(changed func(flag string) bool, c record.Campaign) {
	f.seed, f.policy, f.data = c.Seed, c.Policy, c.Data
	f.direction = ""
	if len(c.Directions) > 0 {
		f.direction = string(c.Directions[0])
	}
	if len(c.Directions) > 1 {
		f.direction = "both"
	}
	// The user may set a new end of the run, in rounds or in time.
	if changed("rounds") || changed("budget") {
		return
	}
	if f.rounds = c.Rounds; c.BudgetNS > 0 {
		f.budget = seconds(c.BudgetNS)
	}
}

// unfit says that a file cannot be resumed.
func unfit(path string, err error) error {
	if err == nil {
		return nil
	}
	return usageError("start a new result", "%s cannot be continued: %s", path, err)
}
