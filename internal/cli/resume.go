//go:build linux

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
)

// resumable are the commands that go on with a file.
var resumable = []string{"bench", "transfer", "programs", "login"}

// reopen opens the file that a command is to go on with, nil if there is none. A host
// that it knows need not be named again.
func (f *resultFlags) reopen(command string, args *[]string) (*store.File, error) {
	if f.resume == "" {
		return nil, nil
	}
	file, err := store.Resume(f.resume)
	if err != nil {
		return nil, err
	}
	c := file.Old.Campaign
	if target := c.Target; len(*args) == 0 && target != testbed.Loopback {
		*args = []string{target}
	}
	switch by := measuredBy(file.Old); {
	case c.Imported != "":
		err = usageError("start a new result", "%s was imported from a log of %s", f.resume, c.Imported)
	case !slices.Contains(resumable, by):
		err = usageError("start a new result", "%s does not say which command measured it", f.resume)
	case by != command:
		err = usageError("sshpace "+by+" --resume "+shell.Word(f.resume), "%s is a result of %s", f.resume, by)
	case (c.Target == testbed.Loopback) == (len(*args) > 0):
		err = usageError("measure the same target", "%s was measured on %q", f.resume, c.Target)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// measuredBy is the command that measured a file: older files of bench and login do not
// say it.
func measuredBy(f *record.File) string {
	switch {
	case f.Campaign.Command != "" || len(f.Methods) > 0:
		return f.Campaign.Command
	case len(f.LoginKinds) > 0:
		return "login"
	}
	return "bench"
}

// keepPlan refuses flags that a resumed run has from its file.
func keepPlan(flags *pflag.FlagSet) error {
	changeable := []string{"resume", "budget", "rounds", "precision", "connections", "json", "quiet", "out", "list", "all", "ssh", "sshd", "connect-timeout"}
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

// asking are the flags that say which transfer methods are measured.
var asking = []string{"only", "cipher", "mac", "kex", "size", "streams", "compression", "files", "dir", "remote-dir", "rtt", "rate", "loss"}

// asked is what these flags say where they were given, by their names.
func asked(flags *pflag.FlagSet) map[string][]string {
	words := map[string][]string{}
	for _, name := range asking {
		if flag := flags.Lookup(name); flag == nil || !flag.Changed {
			continue
		} else if list, ok := flag.Value.(pflag.SliceValue); ok {
			words[name] = list.GetSlice()
		} else {
			words[name] = []string{flag.Value.String()}
		}
	}
	return words
}

// adoptWords sets flags to such words of a file.
func adoptWords(flags *pflag.FlagSet, asked map[string][]string) error {
	for name, words := range asked {
		flag := flags.Lookup(name)
		if !slices.Contains(asking, name) || flag == nil {
			return usageError("start a new result", "the file says --%s, which has nothing to do with it", name)
		}
		var err error
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			err = list.Replace(words)
			flag.Changed = true
		} else {
			err = flags.Set(name, strings.Join(words, ","))
		}
		if err != nil {
			return usageError("start a new result", "the file says --%s %s", name, strings.Join(words, ","))
		}
	}
	return nil
}

// adopt takes from a file that is resumed what must stay as it was. The file
// may be anybody's: what it says passes the same checks as the flags.
func (f *measureFlags) adopt(changed func(flag string) bool, c record.Campaign) {
	f.seed, f.policy, f.data = c.Seed, c.Policy, c.Data
	f.direction = ""
	if len(c.Directions) > 0 {
		f.direction = string(c.Directions[0])
	}
	if len(c.Directions) > 1 {
		f.direction = "both"
	}
	// When the run is to end the user may say anew, in rounds or in time.
	if changed("rounds") || changed("budget") {
		return
	}
	if f.rounds = c.Rounds; c.BudgetNS > 0 {
		f.budget = seconds(c.BudgetNS)
	}
}

// unfit says that a file cannot be gone on with.
func unfit(path string, err error) error {
	if err == nil {
		return nil
	}
	return usageError("start a new result", "%s cannot be gone on with: %s", path, err)
}
