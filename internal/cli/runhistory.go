package cli

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
)

// errNothingToRepeat is a --rerun for which the last run has no hosts: all is well.
var errNothingToRepeat = errors.New("nothing to repeat")

// again adds the hosts of the last run that --rerun names and takes over, as far
// as the user says nothing else, that run's flags and what it did.
func (f *runFlags) again(stderr io.Writer, store *history.Store, flags *pflag.FlagSet, args []string) ([]string, error) {
	last, hosts, err := store.Again(f.rerun, stderr)
	if err != nil {
		return nil, err
	}
	f.selection.Sets = append(f.selection.Sets, hosts...)
	if f.selection.None() {
		return nil, errNothingToRepeat
	}
	if len(last.How.Unkept) > 0 && !flags.Changed("option") {
		return nil, usageError("give all options with -o again",
			"run %s was given %s, whose values are not kept", last.ID, strings.Join(last.How.Unkept, ", "))
	}
	if err := setFlags(flags, last.How.Flags); err != nil {
		return nil, &Error{Err: err, Hint: "give hosts and command anew; run " + last.ID + " was recorded by another version", Code: ExitUsage}
	}
	if len(args) == 0 && f.script == "" && !f.list {
		if args, f.script, err = last.Task(f.rerun, f.stdin); err != nil {
			return nil, err
		}
	}
	return args, f.check()
}

// repeated are the flags that a run is repeated with: how hosts are connected
// to and what bounds a run. Those that relax a check are not among them.
var repeated = []string{
	"config", "option", "login", "port", "identity", "jump", "ipv4", "ipv6",
	"fanout", "connect-timeout", "timeout", "max-output", "retry-for", "engine", "no-remote-kill",
	"sudo", "per-host", "canary", "then-confirm", "batch", "pause", "max-fail", "confirm-above",
}

// how is what the record needs for a repetition.
func (f *runFlags) how(flags *pflag.FlagSet, args []string) (output.How, error) {
	h := output.How{Files: f.view.Files, Stdin: f.stdin, Flags: history.Kept(given(flags, repeated))}
	h.Unkept, _ = history.WithoutSecrets(f.connection.Settings)
	if f.script == "" {
		return h, nil
	}
	var err error
	h.Script, err = history.ScriptOf(f.script, args)
	return h, err
}

// setFlags sets recorded flags that are not set already.
func setFlags(flags *pflag.FlagSet, recorded map[string][]string) error {
	for _, name := range repeated {
		if words := recorded[name]; len(words) > 0 && !flags.Changed(name) {
			if err := setTo(flags, name, words); err != nil {
				return err
			}
		}
	}
	return nil
}
