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
	"text/tabwriter"

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
func (f *runFlags) again(store *history.Store, flags *pflag.FlagSet, args []string) ([]string, error) {
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
	f.selection.sets = append(f.selection.sets, hosts...)
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
}

// how is what the record needs for a repetition.
func (f *runFlags) how(flags *pflag.FlagSet, args []string) (output.How, error) {
	h := output.How{Stdin: f.stdin, Flags: givenFlags(flags)}
	h.Unkept, _ = withoutSecrets(f.connection.Settings)
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
		if !flag.Changed {
			continue
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		if name == "option" {
			_, values = withoutSecrets(values)
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

// secretive are the options of ssh_config(5) whose values may hold secrets:
// environment and command lines.
var secretive = []string{"SetEnv", "ProxyCommand", "KnownHostsCommand", "LocalCommand", "RemoteCommand"}

// withoutSecrets parts the values of -o into the names of those that are not to
// be recorded and all others.
func withoutSecrets(options []string) (names, others []string) {
	for _, option := range options {
		words := strings.FieldsFunc(option, func(r rune) bool { return strings.ContainsRune(" \t\f\"=", r) })
		i := slices.IndexFunc(secretive, func(name string) bool { return len(words) > 0 && strings.EqualFold(name, words[0]) })
		switch {
		case i < 0:
			others = append(others, option)
		case !slices.Contains(names, secretive[i]):
			names = append(names, secretive[i])
		}
	}
	return names, others
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

// historySets are the columns of the list.
var historySets = []string{"ok", "failed", "unreachable", "not-started", "unfinished"}

// showHistory lists the recorded runs, the newest first, or one in full.
func showHistory(w io.Writer, store *history.Store, args []string) error {
	b := bufio.NewWriter(w)
	if len(args) > 0 {
		rec, err := store.Read(args[0])
		if err != nil {
			return &Error{Err: err, Hint: "sshpace run --history lists the runs", Code: ExitUsage}
		}
		if err := showRecord(b, rec); err != nil {
			return err
		}
		return b.Flush()
	}
	ids, err := store.IDs()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tHOSTS\tOK\tFAILED\tUNREACHABLE\tNOT STARTED\tUNFINISHED\tCOMMAND")
	for _, id := range ids {
		rec, err := store.Read(id)
		if err != nil {
			fmt.Fprintf(table, "%s\t\t\t\t\t\t\t(%s)\n", termsafe.Line(id), oneLine(err.Error()))
			continue
		}
		counts := rec.Counts()
		fmt.Fprintf(table, "%s\t%d", termsafe.Line(id), len(rec.Hosts))
		for _, set := range historySets {
			fmt.Fprintf(table, "\t%d", counts[set])
		}
		fmt.Fprintf(table, "\t%s\n", termsafe.Line(rec.Command))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	return b.Flush()
}

// showRecord writes one run: what it was, its sets and why hosts failed.
func showRecord(w io.Writer, rec *history.Record) error {
	fmt.Fprintf(w, "run %s, %s: %s\n", termsafe.Line(rec.ID), rec.Start.Local().Format("2006-01-02 15:04:05"), termsafe.Line(rec.Command))
	for _, set := range historySets {
		hosts, err := rec.Select(set)
		if err != nil {
			return err
		}
		if len(hosts) > 0 {
			fmt.Fprintf(w, "%s (%d): %s\n", set, len(hosts), termsafe.Line(hostset.Fold(hosts)))
		}
	}
	for _, r := range rec.Results {
		if r.Status == "ok" && r.Missing == "" {
			continue
		}
		fmt.Fprintf(w, "%s: %s\n", termsafe.Line(r.Host), termsafe.Line(explainRecorded(r)))
	}
	return nil
}

func explainRecorded(r history.Result) string {
	var parts []string
	if r.Exit >= 0 {
		parts = append(parts, fmt.Sprintf("exit %d", r.Exit))
	}
	if r.Signal != "" {
		parts = append(parts, "signal "+r.Signal)
	}
	if r.Error != "" {
		parts = append(parts, r.Error)
	}
	if r.Missing != "" {
		parts = append(parts, "output incomplete: "+r.Missing)
	}
	if len(parts) == 0 {
		parts = append(parts, r.Status)
	}
	return strings.Join(parts, ", ")
}
