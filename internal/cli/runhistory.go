package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

// errNothingToRepeat is a --rerun for which the last run has no hosts: all is well.
var errNothingToRepeat = errors.New("nothing to repeat")

// again adds the hosts of the last run that --rerun selects and takes over that run's flags and
// command, unless the user gives others.
func (f *runFlags) again(sys System, store *history.Store, flags *pflag.FlagSet, args []string) ([]string, error) {
	var said bytes.Buffer // once, also if another program continues
	defer said.WriteTo(sys.Stderr)
	last, hosts, err := store.Again(f.rerun, &said)
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
	same := len(args) == 0 && f.script == ""
	with, without := ofConnection, ofCommand
	if same {
		with, without = slices.Concat(with, without), nil
	}
	did := fmt.Sprintf("on %s of run %s%s%s", unit.Count(len(hosts), "host"), last.ID,
		typed(", with its ", flags, with, last.How.Flags), typed(", without its ", flags, without, last.How.Flags))
	if err := setFlags(flags, with, last.How.Flags); err != nil {
		return nil, &Error{Err: err, Hint: "give hosts and command anew; run " + last.ID + " was recorded by another version", Code: ExitUsage}
	}
	if err := f.checkHub(sys, flags); err != nil || f.list {
		return args, cmp.Or(err, f.check())
	}
	if same {
		if args, f.script, err = last.Task(f.rerun, f.stdin); err != nil {
			return nil, err
		}
		f.repeats, did = last.ID, "again "+did+": "+last.Command
	}
	fmt.Fprintf(&said, "sshpace: %s\n", oneLine(did))
	return args, f.check()
}

// typed returns recorded flags that are not given anew, as they are typed, after a word; "" for
// none.
func typed(before string, flags *pflag.FlagSet, names []string, recorded map[string][]string) string {
	var words []string
	for _, name := range names {
		for _, value := range recorded[name] {
			if flags.Changed(name) {
				continue
			}
			words = append(words, strings.TrimSuffix("--"+name+"="+value, "=true"))
		}
	}
	if len(words) == 0 {
		return ""
	}
	return before + shell.Line(words...)
}

// A run is repeated with the flags for connecting to its hosts and, if its command is repeated,
// too, with those for running it. Flags that relax a check are in neither.
var (
	ofConnection = []string{"hub", "nats", "creds", "tls-ca", "pool", "pools", "config", "option", "login", "port", "identity", "jump", "ipv4", "ipv6", "connect-timeout", "engine", "no-remote-kill", "inventory", "inventory-command"}
	ofCommand    = []string{
		"fanout", "timeout", "max-output", "keep-output", "retry-for",
		"sudo", "tty", "wait-for-reboot", "per-host", "expand", "var", "vars", "canary", "then-confirm", "batch", "pause", "splay", "max-fail", "fail-fast", "confirm-above",
		"idempotent", "sign-key", "expires",
	}
)

// how returns the data that a repetition needs, for the record.
func (f *runFlags) how(flags *pflag.FlagSet, args []string) (output.How, error) {
	h := output.How{Files: f.view.Files, Stdin: f.stdin, Flags: history.Kept(given(flags, slices.Concat(ofConnection, ofCommand))), Repeats: f.repeats, Kept: int64(f.keepOutput)}
	if err := anywhere(h.Flags, "creds", "tls-ca", "pools", "sign-key"); err != nil {
		return h, err
	}
	if f.detach {
		machine, err := os.Hostname()
		if err != nil {
			return h, err
		}
		h.Detached = &output.Process{PID: os.Getpid(), Machine: machine}
	}
	h.Unkept, _ = history.WithoutSecrets(f.connection.Settings)
	if f.script == "" {
		return h, nil
	}
	var err error
	h.Script, err = history.ScriptOf(f.script, args)
	return h, err
}

// anywhere makes files that flags name be found from any directory.
func anywhere(recorded map[string][]string, names ...string) (err error) {
	for _, name := range names {
		if words := recorded[name]; err == nil && len(words) > 0 {
			words[0], err = filepath.Abs(words[0])
		}
	}
	return err
}

// setFlags sets recorded flags that are not set already.
func setFlags(flags *pflag.FlagSet, names []string, recorded map[string][]string) error {
	for _, name := range names {
		if words := recorded[name]; len(words) > 0 && !flags.Changed(name) {
			if err := setTo(flags, name, words); err != nil {
				return err
			}
		}
	}
	return nil
}

// listingFlags select the earlier runs that --history lists.
type listingFlags struct {
	history, follow bool
	since           moment
	limit           int
}

func (f *listingFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.history, "history", false, "list earlier runs; with words, only those that have them in their command, hosts or kept output; with an ID, that run in full, in any view")
	f.registerLimits(flags, "with --history: ")
	flags.BoolVar(&f.follow, "follow", false, "with --history: show the last run, or the one with an ID, in any view, until it ends")
}

// registerLimits defines the flags of a list of runs; when says where they count.
func (f *listingFlags) registerLimits(flags *pflag.FlagSet, when string) {
	flags.Var(&f.since, "since", when+"only runs since then, such as 2h, 3d or 2026-11-20")
	flags.IntVar(&f.limit, "limit", 0, when+"at most this many `RUNS` (default: 20 on a terminal, otherwise all; -1: all)")
}

// views are the flags for other views than the folded one.
var views = []string{"diff", "group-by", "mask-names", "rows", "sort", "timestamps", "watch"}

// showHistory lists the recorded runs that the flags select, as a table or in JSON, or shows one in
// any view.
func (f *runFlags) showHistory(ctx context.Context, sys System, store *history.Store, flags *pflag.FlagSet, words []string) error {
	l := history.Listing{Words: words, Since: f.listing.since.Time, Limit: f.listing.limit, Width: terminal.Width(sys.Stdout, sys.Getenv), JSON: f.view.JSON}
	l.View = func(rec *history.Record, s fleet.Start) (fleet.Sink, error) {
		v := f.view
		v.drain = ctx
		v.Quiet, v.Gather = true, v.Gather || !slices.ContainsFunc(views, flags.Changed) // its sets are its summary
		to := sys.views()
		to.Err = to.Out // all of it is the data
		return v.sink(to, s.Hosts)
	}
	return store.Print(sys.Stdout, l)
}

// follow shows one run until it ends: the last one, or the one that is named.
func (f *runFlags) follow(ctx context.Context, sys System, store *history.Store, names []string) error {
	if len(names) > 1 {
		return usageError("give the ID of one run, or nothing for the last one", "--follow shows one run")
	}
	rec, err := store.Run(cmp.Or(strings.Join(names, ""), "last"))
	if err != nil {
		return err
	}
	return f.followRun(ctx, sys, store, rec)
}

// followRun shows a run until it ends, and ends as it does.
func (f *runFlags) followRun(ctx context.Context, sys System, store *history.Store, rec *history.Record) error {
	if rec.How.Job != "" && !rec.Finished && !rec.Live {
		return f.takeUp(ctx, sys, store, rec)
	}
	drain, _, stop := interruptsSaying(ctx, sys, "the run continues without this view")
	defer stop()
	summary, err := store.Follow(drain, rec, func(rec *history.Record, s fleet.Start) (fleet.Sink, error) {
		f.view.drain, f.view.Files = drain, rec.How.Files
		return f.view.sink(sys.views(), s.Hosts)
	})
	if drain.Err() != nil {
		return interrupted(drain, ignoreCancel(err))
	}
	return output.Ending{Summary: summary, Err: err, Recorded: true, Run: rec.ID, Files: f.view.Files, MaxRC: f.maxrc}.Verdict()
}

// moment is a time of the past as people write it: an age, or a local date.
type moment struct{ time.Time }

// Set parses an age, such as 2h, or a local date.
func (m *moment) Set(text string) error {
	for _, form := range []string{"2006-01-02", "2006-01-02 15:04", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(form, text, time.Local); err == nil {
			m.Time = t
			return nil
		}
	}
	var ago seconds
	days, isDays := strings.CutSuffix(text, "d")
	if n, err := strconv.ParseFloat(days, 64); isDays && err == nil {
		text = fmt.Sprint(n * 24 * 60 * 60)
	}
	err := ago.Set(text)
	if err != nil {
		return errors.New("want a time such as 2h, 3d, 2026-11-20 or '2026-11-20 15:04'")
	}
	m.Time = time.Now().Add(-time.Duration(ago))
	return nil
}

// Type names the value in the help.
func (*moment) Type() string { return "when" }

// String returns a text that Set reads; "" is none.
func (m *moment) String() string {
	if m.IsZero() {
		return ""
	}
	return m.Format("2006-01-02 15:04")
}
