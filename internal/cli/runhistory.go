package cli

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/bounded"
)

// again adds the hosts of the last run that --rerun names and takes over, as far
// as the user says nothing else, that run's flags and what it did.
func (f *runFlags) again(stderr io.Writer, store *history.Store, flags *pflag.FlagSet, args []string) ([]string, error) {
	last, err := store.Last()
	if err != nil {
		return nil, &Error{Err: err, Hint: "--rerun needs a run that was recorded; see sshpace run --history", Code: ExitUsage}
	}
	hosts, err := last.Select(f.rerun)
	if err != nil {
		return nil, &Error{Err: err, Hint: "use failed, unreachable, unknown, unfinished, incomplete or not-started, or several with commas", Code: ExitUsage}
	}
	if len(hosts) == 0 {
		return nil, usageError("there is nothing to repeat", "the last run, %s, has no %s hosts", last.ID, f.rerun)
	}
	if left, _ := last.Select("unknown"); len(left) > 0 && !slices.ContainsFunc(left, func(h string) bool { return slices.Contains(hosts, h) }) {
		fmt.Fprintf(stderr, "sshpace: left out, since nobody knows whether the command ran there: %s; --rerun %s,unknown takes them in\n", termsafe.Line(hostset.Fold(left)), f.rerun)
	}
	f.selection.Sets = append(f.selection.Sets, hosts...)
	if len(last.How.Unkept) > 0 && !flags.Changed("option") {
		return nil, usageError("give all options with -o again",
			"run %s was given %s, whose values are not kept", last.ID, strings.Join(last.How.Unkept, ", "))
	}
	if err := setFlags(flags, last.How.Flags); err != nil {
		return nil, &Error{Err: err, Hint: "give hosts and command anew; run " + last.ID + " was recorded by another version", Code: ExitUsage}
	}
	if len(args) == 0 && f.script == "" && !f.list {
		args, err = f.sameTask(last)
	}
	if err == nil {
		err = f.check()
	}
	return args, err
}

// sameTask returns what stands behind the flags when a run is repeated. What it
// needs beyond the record must be there: input is not kept, nor are scripts.
func (f *runFlags) sameTask(last *history.Record) ([]string, error) {
	script := last.How.Script
	switch {
	case last.How.Files:
		return nil, usageError("repeat it with -w @last:"+f.rerun, "run %s was %s, which is no command for hosts", last.ID, last.Command)
	case last.How.Stdin && !f.stdin:
		return nil, usageError("give it again: sshpace run --rerun "+f.rerun+" --stdin < FILE",
			"run %s sent standard input to its command, and that is not kept", last.ID)
	case script != nil:
		sum, err := fileSum(script.Path)
		if err != nil {
			return nil, &Error{Err: err, Hint: "the last run sent this script; name one with --script", Code: ExitUsage}
		}
		if sum != script.SHA256 {
			return nil, usageError("to send it as it is now, name it with --script "+shell.Word(script.Path),
				"%s is not the script that run %s sent", script.Path, last.ID)
		}
		f.script = script.Path
		return script.Args, nil
	case last.Command == "":
		return nil, nil
	}
	return []string{last.Command}, nil
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
	h := output.How{Files: f.dialogue != nil, Stdin: f.stdin, Flags: givenFlags(flags)}
	h.Unkept, _ = history.WithoutSecrets(f.connection.Settings)
	if f.script == "" {
		return h, nil
	}
	path, err := filepath.Abs(f.script)
	if err != nil {
		return h, err
	}
	sum, err := fileSum(path)
	h.Script = &output.Script{Path: path, SHA256: sum, Args: args}
	return h, err
}

// givenFlags are those of the repeated flags that are set, with their values,
// without options that may hold secrets.
func givenFlags(flags *pflag.FlagSet) map[string][]string {
	given := map[string][]string{}
	for _, name := range repeated {
		flag := flags.Lookup(name)
		if flag == nil || !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if name == "option" {
			_, values = history.WithoutSecrets(values)
		}
		for _, v := range values {
			if name == "config" || name == "identity" {
				v = absolute(v)
			}
			given[name] = append(given[name], v)
		}
	}
	return given
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
		if flags.Changed(name) {
			continue
		}
		for _, v := range recorded[name] {
			if err := flags.Set(name, v); err != nil {
				return err
			}
		}
	}
	return nil
}

// fileSum is the SHA-256 of a file in hex.
func fileSum(path string) (string, error) {
	data, err := bounded.ReadFile(path, bounded.Config)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), err
}

// showHistory lists the recorded runs, or shows one in full.
func showHistory(w io.Writer, store *history.Store, args []string) error {
	b := bufio.NewWriter(w)
	show := store.Show
	if len(args) > 0 {
		rec, err := store.Read(args[0])
		if err != nil {
			return &Error{Err: err, Hint: "sshpace run --history lists the runs", Code: ExitUsage}
		}
		show = rec.Show
	}
	if err := show(b); err != nil {
		return err
	}
	return b.Flush()
}
