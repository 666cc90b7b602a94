package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fanout/copy"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/safedir"
)

// shellCommand is a command to the shell itself. It returns an exit code.
type shellCommand struct {
	name, form, says string
	do               func(s *session, ctx context.Context, argument string) int
}

func shellCommands() []shellCommand {
	return []shellCommand{
		{":help", "", "this list", (*session).help},
		{":hosts", "", "the hosts, where their shells are, and which are left out", (*session).list},
		{":only", "failed|SET|all", "further lines are for these hosts alone; failed: those where the last line failed", (*session).choose},
		{":drop", "SET", "forget these hosts", (*session).drop},
		{":retry", "", "begin new shells on the hosts that are left out; cd, export and functions are gone there", (*session).retry},
		{":diff", "[HOST]", "output of the last line as differences from the largest group, or from a host", (*session).diff},
		{":watch", "[COMMAND]", "run a line in the view of sshpace run --watch; without COMMAND show the last line there", (*session).watch},
		{":copy", "SRC... :DEST", "copy files to the hosts, as sshpace copy does", (*session).copy},
		{":timeout", "TIME", "time for each line; 0 for any", (*session).setTimeout},
		{":log", "[FILE]", "also write further lines and their output to this file; to none without FILE", (*session).setLog},
		{":quit", "", "end, as Ctrl-D does", nil},
	}
}

// command runs a command to the shell itself.
func (s *session) command(ctx context.Context, name, argument string) int {
	var names []string
	for _, c := range shellCommands() {
		switch names = append(names, c.name); {
		case c.name != name || c.do == nil:
		case c.form == "" && argument != "", c.form != "" && c.form[0] != '[' && argument == "":
			return s.fail(usageError(strings.TrimSpace("write it as "+c.name+" "+c.form), "%s has other arguments", name))
		default:
			return c.do(s, ctx, argument)
		}
	}
	return s.fail(usageError(fault.Near("", name, names, ":help lists the commands of the shell"), "unknown command %q", name))
}

// print prints a line for people.
func (s *session) print(format string, args ...any) {
	to := s.sys.Stdout
	if s.f.view.JSON {
		to = s.sys.Stderr
	}
	fmt.Fprintf(to, format+"\n", args...)
}

func (s *session) help(context.Context, string) int {
	for _, c := range shellCommands() {
		s.print("%s %s", text.Pad(c.name+" "+c.form, len(":only failed|SET|all ")), c.says)
	}
	return 0
}

func (s *session) list(context.Context, string) int {
	groups := map[string][]string{}
	for _, h := range s.hosts {
		state, _ := s.shells.State(h)
		what := cmp.Or(state.Directory, "no shell yet")
		if why := s.out[h.String()]; why != "" {
			what = "left out: " + why
		} else if s.only != nil && !s.only[h.String()] {
			what += " (not chosen)"
		}
		groups[what] = append(groups[what], h.String())
	}
	for _, what := range slices.Sorted(maps.Keys(groups)) {
		s.print("%s (%d): %s", termsafe.Line(hostset.Fold(groups[what])), len(groups[what]), termsafe.OneLine(what))
	}
	return 0
}

// named returns the hosts of the session that a set names.
func (s *session) named(set string) (map[string]bool, error) {
	known := map[string]bool{}
	for _, h := range s.hosts {
		known[h.String()] = true
	}
	all, err := hostset.Expand(set, hostset.Options{Known: func() ([]string, error) { return slices.Collect(maps.Keys(known)), nil }})
	if err != nil {
		return nil, &Error{Err: err, Hint: "name hosts of :hosts, such as web[1-3] or web*", Code: ExitUsage}
	}
	found := map[string]bool{}
	for _, name := range all {
		if !known[name] {
			return nil, usageError("name hosts of :hosts", "%s is no host of this shell", name)
		}
		found[name] = true
	}
	return found, nil
}

func (s *session) choose(_ context.Context, set string) int {
	switch set {
	case "all":
		s.only = nil
		return 0
	case "failed":
		failed := map[string]bool{}
		for _, r := range s.last.results {
			if r.Status() == fleet.Failed {
				failed[r.Host.String()] = true
			}
		}
		if len(failed) == 0 {
			return s.fail(&Error{What: "the last line failed on no host", Hint: "name a set, or all"})
		}
		s.only = failed
		return 0
	}
	only, err := s.named(set)
	if err == nil {
		s.only = only
	}
	return s.fail(err)
}

func (s *session) drop(_ context.Context, set string) int {
	dropped, err := s.named(set)
	if err != nil {
		return s.fail(err)
	}
	s.hosts = slices.DeleteFunc(slices.Clone(s.hosts), func(h host.Host) bool {
		if dropped[h.String()] {
			s.shells.Forget(h)
		}
		return dropped[h.String()]
	})
	return 0
}

func (s *session) retry(ctx context.Context, _ string) int {
	for _, h := range s.hosts {
		if s.out[h.String()] != "" {
			s.shells.Forget(h)
		}
	}
	if len(s.out) == 0 {
		return s.fail(&Error{What: "no host is left out"})
	}
	clear(s.out)
	return s.begin(ctx)
}

func (s *session) diff(_ context.Context, from string) int {
	switch {
	case len(s.last.results) == 0:
		return s.fail(&Error{What: "there is no line to compare the output of", Hint: "first run one"})
	case s.last.size > keptForDiff:
		return s.fail(&Error{What: "the last line wrote too much to compare", Hint: "write it into a file on the hosts, and compare that"})
	}
	return s.again(&viewFlags{View: output.View{Diff: cmp.Or(from, output.Majority), Quiet: true, Raw: s.f.view.Raw, Color: s.f.view.Color}})
}

// again shows the last line in a view.
func (s *session) again(v *viewFlags) int {
	sink, err := v.sink(s.sys.views(), s.last.start.Hosts)
	if err == nil {
		err = s.last.replay(sink)
	}
	return s.fail(err)
}

func (s *session) watch(ctx context.Context, line string) int {
	f := *s.f
	f.view.Watch = true
	if err := cmp.Or(f.view.Check(), f.view.usable(s.sys)); err != nil {
		return s.fail(err)
	}
	if line == "" {
		return s.again(&viewFlags{View: output.View{Watch: true, Quiet: true, Color: f.view.Color}, drain: ctx})
	}
	t := *s.task
	t.command = fleet.Command{Line: line, Text: line}
	return s.onChosen(ctx, &t, &f, []string{line})
}

func (s *session) copy(ctx context.Context, argument string) int {
	args, err := shell.Split(argument)
	if err != nil {
		return s.fail(usageError("close the quote", "%v", err))
	}
	f := copyFlags{runFlags: *s.f}
	f.view.Gather, f.view.Diff, f.view.Group, f.view.Mask, f.view.Files = false, "", "", false, true
	if err := f.upload(s.sys, args, &placing{}, &copy.Upload{}); err != nil {
		return s.fail(err)
	}
	t := *s.task
	t.command = fleet.Command{Line: "sftp", Text: "copy " + argument, Dialogue: f.dialogue(len(s.chosen()))}
	t.how.Files = true
	return s.onChosen(ctx, &t, &f.runFlags, args)
}

func (s *session) setTimeout(_ context.Context, text string) int {
	if err := s.f.timeout.Set(text); err != nil {
		return s.fail(usageError("such as :timeout 30s", ":timeout %s: %v", text, err))
	}
	return 0
}

func (s *session) setLog(_ context.Context, name string) int {
	if s.log != nil {
		s.log.Close()
		s.log = nil
	}
	if name == "" {
		return 0
	}
	var err error
	s.log, err = os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return s.fail(withHint(err, "name a file that can be written to"))
}

// complete returns the texts that a beginning of a line may become.
func (s *session) complete(begun string) (all []string) {
	name, argument, spaced := strings.Cut(begun, " ")
	switch {
	case !strings.HasPrefix(begun, ":"):
	case !spaced:
		for _, c := range shellCommands() {
			if strings.HasPrefix(c.name, name) {
				all = append(all, c.name)
			}
		}
	case name == ":only" || name == ":drop" || name == ":diff":
		at := len(begun) - len(argument) + strings.LastIndexAny(argument, ",!&^ ") + 1
		for _, h := range s.hosts {
			if strings.HasPrefix(h.String(), begun[at:]) {
				all = append(all, begun[:at]+h.String())
			}
		}
	}
	return all
}

// typedLines are lines that people have typed, the last one first.
type typedLines struct {
	lines []string
	file  *os.File // nil: they are not kept
}

// mostTyped is how many lines are kept.
const mostTyped = 1000

func (t *typedLines) Len() int        { return len(t.lines) }
func (t *typedLines) At(i int) string { return t.lines[len(t.lines)-1-i] }

// Add adds a line, unless it begins with a blank: people write secrets so.
func (t *typedLines) Add(line string) {
	if line == "" || line[0] == ' ' || len(t.lines) > 0 && t.At(0) == line {
		return
	}
	t.lines = append(t.lines, line)
	if t.file != nil {
		fmt.Fprintln(t.file, line)
	}
}

const typedFile = "shell-lines"

// keep reads the lines of earlier shells, and keeps those of this one, for us alone.
func (t *typedLines) keep(sys System) (stop func()) {
	err := t.open(safedir.State(sys.Getenv))
	if err != nil {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: typed lines are not kept: %s\n", oneLine(err.Error()))
		return func() {}
	}
	return func() { t.file.Close() }
}

func (t *typedLines) open(state string) error {
	dir, err := safedir.Make(state)
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := dir.Own(typedFile)
	switch {
	case err == nil:
		data, _ := io.ReadAll(old)
		old.Close()
		t.lines = strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if len(t.lines) > 2*mostTyped {
		t.lines = t.lines[len(t.lines)-mostTyped:]
		if err := file.Replace(dir.Path()+"/"+typedFile, []byte(strings.Join(t.lines, "\n")+"\n"), 0o600); err != nil {
			return err
		}
	}
	t.file, err = dir.OpenFile(typedFile, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	return err
}
