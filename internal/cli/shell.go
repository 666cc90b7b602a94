package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fanout/shell"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

func newShellCommand(sys System) *cobra.Command {
	f := runFlags{maxOutput: fanout.DefaultMaxOutput}
	cmd := page("shell", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.shell(cmd.Context(), sys, cmd.Flags()) },
	})
	flags := cmd.Flags()
	f.register(flags)
	f.registerOutput(flags)
	f.secrets.registerLogin(flags)
	completeSets(cmd, sys, &f.connection)
	return cmd
}

// shell gives lines to shells on the hosts: those that are typed, or those of standard input.
func (f *runFlags) shell(ctx context.Context, sys System, flags *pflag.FlagSet) error {
	if !flags.Changed("gather") && !f.view.JSON && !slices.ContainsFunc(views, flags.Changed) {
		f.view.Gather = true
	}
	if err := cmp.Or(f.check(), f.view.usable(sys)); err != nil {
		return err
	}
	switch {
	case f.selection.ReadsStdin():
		return usageError("put the hosts into a file", "lines of a shell and hosts from standard input exclude each other")
	case f.view.Outdir != "":
		return usageError("write :log FILE in the shell", "--dir holds the output of one run, and each line is one")
	}
	f.person = person(sys)
	t, err := f.task(ctx, sys, history.New(history.Dir(sys.Getenv)), flags, []string{"sh"})
	if err != nil {
		return err
	}
	defer t.close()
	if f.list {
		return hostlist.Exact(sys.Stdout, t.hosts)
	}
	if err := roomToKeep(len(t.hosts)); err != nil {
		return err
	}
	under, err := f.secrets.Over(ctx, sys.screen(), t.reach)
	if err != nil {
		return err
	}
	s := &session{sys: sys, f: f, task: t, shells: shell.New(under), hosts: t.hosts, out: map[string]string{}}
	t.shells, t.how.Shell = s.shells, true
	defer s.close()
	typed := &typedLines{}
	s.editor = terminal.NewEditor(sys.Stdin, sys.Stderr, typed, s.complete)
	if s.editor == nil {
		return s.script(ctx, sys.Stdin)
	}
	if !f.noRecord {
		defer typed.keep(sys)()
	}
	return s.talk(ctx)
}

// session is a shell on hosts.
type session struct {
	sys    System
	f      *runFlags
	task   *task // each line is a copy of it
	shells *shell.Executor
	editor *terminal.Editor  // nil without a terminal
	hosts  []host.Host       // all but those that were dropped
	out    map[string]string // why hosts are left out, by their names
	only   map[string]bool   // names of hosts that lines are for; nil: all
	last   lastLine
	log    *os.File // nil: none
}

func (s *session) close() {
	s.shells.Close()
	if s.log != nil {
		s.log.Close()
	}
}

// script runs the lines of standard input.
func (s *session) script(ctx context.Context, from io.Reader) error {
	exit := 0
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() && ctx.Err() == nil {
		code, quit := s.do(ctx, lines.Text())
		if exit == 0 || exit == ExitUnreachable && code != 0 || s.f.maxrc && code > exit || code >= ExitHangup {
			exit = code
		}
		if quit || code >= ExitHangup && !s.f.maxrc || code != 0 && s.f.pace.FailFast {
			break
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fault.Exit(exit)
}

// talk runs the lines that a person types, once the shells have begun.
func (s *session) talk(ctx context.Context) error {
	code := s.begin(ctx)
	for quit := len(s.chosen()) == 0; !quit && (code < ExitHangup || code == ExitInterrupted); {
		s.leaveOut(nil)
		line, err := s.editor.Line(ctx, s.prompt())
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if code, quit = s.do(ctx, line); quit {
			return nil
		}
	}
	return fault.Exit(code)
}

// begin begins the shells where there is none yet.
func (s *session) begin(ctx context.Context) int {
	t, f := *s.task, *s.f
	f.view.Watch = false
	t.command, t.store = fleet.Command{Line: ":", Text: "sh"}, nil
	t.hosts = slices.DeleteFunc(s.chosen(), func(h host.Host) bool { _, has := s.shells.State(h); return has })
	return s.run(ctx, &t, &f)
}

// do carries out a line; quit: it was the last one.
func (s *session) do(ctx context.Context, line string) (code int, quit bool) {
	name, argument, _ := strings.Cut(strings.TrimSpace(line), " ")
	switch {
	case name == "" || name[0] == '#':
		return 0, false
	case name == ":quit", name == "exit" && argument == "":
		return 0, true
	case len(name) > 1 && name[0] == ':':
		return s.command(ctx, name, strings.TrimSpace(argument)), false
	}
	t := *s.task
	t.command = fleet.Command{Line: line, Text: strings.TrimSpace(line)}
	if line[0] == ' ' {
		t.store = nil // as in the history of shells
	}
	return s.onChosen(ctx, &t, s.f, []string{line}), false
}

// onChosen runs a task on the hosts that lines are for.
func (s *session) onChosen(ctx context.Context, t *task, f *runFlags, args []string) int {
	s.leaveOut(nil)
	if t.hosts = s.chosen(); len(t.hosts) == 0 {
		return s.fail(&Error{What: "no host is left", Hint: ":hosts says why, :retry begins new shells, :only all takes all hosts", Code: ExitUnreachable})
	}
	if err := f.expand(ctx, t, args); err != nil {
		return s.fail(err)
	}
	return s.run(ctx, t, f)
}

// run runs a task and leaves out the hosts that it has lost.
func (s *session) run(ctx context.Context, t *task, f *runFlags) int {
	s.last = lastLine{}
	t.beside = output.Tee{&s.last}
	if s.log != nil {
		v := f.view.View
		v.Color, v.Quiet, v.Watch = "never", true, false
		fmt.Fprintf(s.log, "# %s\n", termsafe.Line(t.command.Text))
		sink, err := v.Sink(output.Streams{Out: s.log, Err: s.log, Screen: terminal.NewScreen(s.log, s.sys.Getenv), Getenv: s.sys.Getenv}, t.hosts)
		if err != nil {
			return s.fail(err)
		}
		t.beside = append(t.beside, sink)
	}
	code := s.fail(t.run(ctx, s.sys, f))
	s.leaveOut(s.last.results)
	return code
}

// fail reports an error and returns its exit code; 0 for none.
func (s *session) fail(err error) int { return conclude(s.sys.Stderr, err) }

// leaveOut leaves out the hosts without a shell: those that a line did not reach, and those whose
// shell has ended. A new shell would lack all that was done in the old one.
func (s *session) leaveOut(results []fleet.Result) {
	why := map[string]string{}
	for _, r := range results {
		if r.Status() == fleet.Unreachable {
			why[r.Host.String()] = r.Err
		}
	}
	var left []string
	for _, h := range s.hosts {
		name := h.String()
		if state, _ := s.shells.State(h); state.Ended != "" {
			why[name] = "its shell has ended: " + state.Ended
		}
		if s.out[name] == "" && why[name] != "" {
			s.out[name] = why[name]
			left = append(left, name)
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(s.sys.Stderr, "sshpace: left out from now on: %s; :hosts says why, :retry begins a new shell\n", termsafe.Line(hostset.Fold(left)))
	}
}

// chosen returns the hosts that lines are for.
func (s *session) chosen() (hosts []host.Host) {
	for _, h := range s.hosts {
		if name := h.String(); s.out[name] == "" && (s.only == nil || s.only[name]) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// prompt says how many hosts a line is for, and where.
func (s *session) prompt() string {
	hosts, places := s.chosen(), map[string]bool{}
	text := unit.Count(len(hosts), "host")
	if len(hosts) < len(s.hosts) {
		text = fmt.Sprintf("%d of %s", len(hosts), unit.Count(len(s.hosts), "host"))
	}
	for _, h := range hosts {
		if state, has := s.shells.State(h); has {
			places[state.Directory] = true
		}
	}
	for place := range places {
		if text += " " + place; len(places) > 1 {
			text = strings.TrimSuffix(text, place) + fmt.Sprintf("in %d directories", len(places))
			break
		}
	}
	return termsafe.OneLine(text) + "> "
}

// lastLine keeps a run.
type lastLine struct {
	fleet.Nothing
	start   fleet.Start
	events  []fleet.Event
	size    int
	results []fleet.Result
	so      fleet.Summary
}

// keptForDiff is how much output of a line :diff can show.
const keptForDiff = 32 << 20

func (l *lastLine) Begin(s fleet.Start) error {
	l.start = s
	return nil
}

func (l *lastLine) Output(e fleet.Event) error {
	if l.size += len(e.Data); l.size <= keptForDiff {
		e.Data = slices.Clone(e.Data)
		l.events = append(l.events, e)
	}
	return nil
}

func (l *lastLine) Done(r fleet.Result, so fleet.Summary) error {
	l.results, l.so = append(l.results, r), so
	return nil
}

// replay reports the run once more.
func (l *lastLine) replay(to fleet.Sink) error {
	err := to.Begin(l.start)
	for _, e := range l.events {
		if err == nil {
			err = to.Output(e)
		}
	}
	for _, r := range l.results {
		if err == nil {
			err = to.Done(r, l.so)
		}
	}
	return errors.Join(err, to.End(l.so))
}
