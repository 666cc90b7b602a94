//go:build linux

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
)

// reopen opens the file that is to be gone on with and adopts what it says. A
// host that it knows need not be named again.
func (f *benchFlags) reopen(flags *pflag.FlagSet, args *[]string) (*store.File, error) {
	if f.resume == "" {
		return nil, nil
	}
	file, err := store.Resume(f.resume)
	if err != nil {
		return nil, err
	}
	if target := file.Old.Campaign.Target; len(*args) == 0 && target != testbed.Loopback {
		*args = []string{target}
	}
	if len(file.Old.LoginKinds) > 0 {
		err = usageError("sshpace handshake --resume "+shell.Word(f.resume), "%s has logins", f.resume)
	} else if len(file.Old.Campaign.Asked) == 0 && len(file.Old.Methods) > 0 {
		err = usageError("start a new result", "%s does not say what was to be measured", f.resume)
	} else if err = f.adopt(flags.Changed, file.Old.Campaign, len(*args) > 0); err == nil {
		err = adoptWords(flags, file.Old.Campaign.Asked)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// fixed are the flags that a resumed run has from its file.
var fixed = []string{"direction", "data", "engine", "server", "cipher", "mac", "kex", "policy", "seed", "exhaustive", "size", "runs",
	"mode", "pairs", "streams", "compression", "files", "folder", "remote-folder", "rtt", "rate", "loss"}

// asking are the flags that say which transfer methods are measured.
var asking = []string{"mode", "pairs", "data", "cipher", "mac", "kex", "policy", "size", "streams", "compression", "files", "folder", "remote-folder", "rtt", "rate", "loss"}

// asked is what these flags say where they were given, by their names.
func asked(flags *pflag.FlagSet) map[string][]string {
	words := map[string][]string{}
	for _, name := range asking {
		if flag := flags.Lookup(name); !flag.Changed {
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
		if !slices.Contains(asking, name) {
			return usageError("start a new result", "the file says --%s, which has nothing to do with it", name)
		}
		flag := flags.Lookup(name)
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
func (f *benchFlags) adopt(changed func(flag string) bool, c record.Campaign, hostGiven bool) error {
	for _, name := range fixed {
		if changed(name) {
			return usageError("leave it out: a resumed run keeps its plan; only --budget, --rounds and --precision may change", "--%s with --resume", name)
		}
	}
	if c.Imported != "" {
		return usageError("start a new result", "%s was imported from a log of %s", f.resume, c.Imported)
	}
	if private := c.Target == testbed.Loopback; private == hostGiven {
		return usageError("measure the same target", "%s was measured on %q", f.resume, c.Target)
	}
	f.engine, f.seed, f.policy = string(c.Engine), c.Seed, c.Policy
	if len(c.Asked) == 0 {
		f.data = c.Data
	}
	if c.Server != record.ServerRemote {
		f.server = string(c.Server)
	}
	f.direction = ""
	if len(c.Directions) > 0 {
		f.direction = string(c.Directions[0])
	}
	if len(c.Directions) > 1 {
		f.direction = "both"
	}
	f.exhaustive, f.runs = c.SizeBytes > 0, max(1, c.Runs)
	f.size = fmt.Sprint(int64(max(1, c.SizeBytes)))
	f.adoptEnd(changed, c)
	if err := f.check(hostGiven); err != nil {
		return &Error{What: fmt.Sprintf("%s cannot be gone on with: %s", f.resume, err), Hint: "start a new result", Code: ExitUsage}
	}
	return nil
}

// adoptEnd takes over when the run is to end, unless the user says it anew:
// blocks or time, whichever flag was given now, else as the file has it.
func (f *benchFlags) adoptEnd(changed func(flag string) bool, c record.Campaign) {
	if !changed("rounds") && !changed("budget") {
		f.rounds = c.Rounds
	}
	if !changed("budget") && c.BudgetNS > 0 {
		f.budget = seconds(c.BudgetNS)
	}
	if !changed("precision") {
		f.precision = percent(c.Precision)
	}
}

// goOn is the command line that resumes a file, whose name is to follow.
func (f *benchFlags) goOn() string {
	return "sshpace bench " + shell.Line(append(f.connection.Options(), "--resume")...) + " "
}
