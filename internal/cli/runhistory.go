package cli

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
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
	"sudo", "canary", "then-confirm", "batch", "pause", "max-fail", "confirm-above",
}

// how is what the record needs for a repetition.
func (f *runFlags) how(flags *pflag.FlagSet, args []string) (output.How, error) {
	h := output.How{Files: f.view.Files, Stdin: f.stdin, Flags: givenFlags(flags)}
	h.Unkept, _ = history.WithoutSecrets(f.connection.Settings)
	if f.script == "" {
		return h, nil
	}
	var err error
	h.Script, err = history.ScriptOf(f.script, args)
	return h, err
}

// givenFlags are those of the repeated flags that are set, with their values,
// without options that may hold secrets.
func givenFlags(flags *pflag.FlagSet) map[string][]string {
	all := given(flags, repeated)
	if _, all["option"] = history.WithoutSecrets(all["option"]); len(all["option"]) == 0 {
		delete(all, "option")
	}
	for _, name := range []string{"config", "identity"} {
		for i, v := range all[name] {
			all[name][i] = absolute(v)
		}
	}
	return all
}

// absolute makes a file name independent of the current folder. ssh itself
// expands ~ and %, and "none" is no file.
func absolute(file string) string {
	if file == "" || file == "none" || file[0] == '~' || file[0] == '%' {
		return file
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
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

// showHistory lists the recorded runs, or shows one in full.
func showHistory(sys System, store *history.Store, args []string, inJSON bool) error {
	b := bufio.NewWriter(sys.Stdout)
	var err error
	switch {
	case len(args) > 0:
		err = showRun(b, store, args[0], inJSON)
	case inJSON:
		err = store.ShowJSON(b)
	default:
		err = store.Show(b, terminal.Width(sys.Stdout, sys.Getenv))
	}
	if err != nil {
		return err
	}
	return b.Flush()
}

func showRun(w io.Writer, store *history.Store, id string, inJSON bool) error {
	rec, err := store.Read(id)
	switch {
	case err != nil:
		return &Error{Err: err, Hint: "sshpace run --history lists the runs", Code: ExitUsage}
	case inJSON:
		return store.WriteJSON(w, id)
	}
	return rec.Show(w)
}
