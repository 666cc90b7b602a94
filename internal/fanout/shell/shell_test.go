package shell_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/shell"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// prompt gives lines to a shell on a server.
type prompt struct {
	t  *testing.T
	ex *shell.Executor
}

var web = host.Host{Name: "web"}

// at begins a prompt for a server; lines are further ones of ssh_config.
func at(t *testing.T, s *sshtest.Sshd, engine reach.Engine, lines string) *prompt {
	t.Helper()
	dir := t.TempDir()
	known, config := filepath.Join(dir, "known"), filepath.Join(dir, "config")
	for path, text := range map[string]string{
		known: fmt.Sprintf("[127.0.0.1]:%d %s", s.Port, sshtest.AuthorizedLine(s.HostKey)),
		config: fmt.Sprintf("%sHost *\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\n"+
			"UserKnownHostsFile %s\nGlobalKnownHostsFile none\n", lines, s.Port, s.User, s.Key, known),
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := reach.New(t.Context(), reach.Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: config}, Stderr: t.Output()}, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	p := &prompt{t, shell.New(r)}
	t.Cleanup(func() { p.ex.Close(); r.Close() })
	return p
}

// said is a line and what it did.
type said struct {
	fleet.Result
	out, err string
}

func (p *prompt) line(line string) said {
	p.t.Helper()
	return p.with(fanout.Params{}, fleet.Command{Line: line})
}

// until is a line that Ctrl-C ends when it has printed something.
func (p *prompt) until(line string) said {
	p.t.Helper()
	drain, end := context.WithCancel(p.t.Context())
	defer end()
	told := &sshtest.Told{OnOutput: func(fleet.Event) error { end(); return nil }}
	return p.told(fanout.Params{Drain: drain}, fleet.Command{Line: line}, told)
}

func (p *prompt) with(params fanout.Params, cmd fleet.Command) said {
	p.t.Helper()
	return p.told(params, cmd, &sshtest.Told{})
}

func (p *prompt) told(params fanout.Params, cmd fleet.Command, told *sshtest.Told) said {
	p.t.Helper()
	params.RetryFor = -1
	if _, err := fanout.Run(p.t.Context(), params, []host.Host{web}, cmd, p.ex, told); err != nil {
		p.t.Fatal(err)
	}
	r := told.Results()[0]
	if params.Drain == nil && r.Class != fleet.NoFailure && r.Err == "" {
		p.t.Errorf("%s: class %s without a word", cmd.Line, r.Class)
	}
	return said{r, told.Text(fleet.Stdout), told.Text(fleet.Stderr)}
}

// is checks the exit status and the output of a line.
func (p *prompt) is(line string, exit int, out string) {
	p.t.Helper()
	if s := p.line(line); s.Exit != exit || s.out != out || s.Ran != fleet.RanYes {
		p.t.Errorf("%s: exit %d, %q, %q; ran %s, %s; want exit %d, %q", line, s.Exit, s.out, s.err, s.Ran, s.Err, exit, out)
	}
}

func lookUp(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Fatalf("these tests need %s: ./test installs it", name)
	}
	return path
}

// TestLoginShells: whatever the login shell is, the shell of the prompt is the host's sh, and what
// a line does to it lasts.
func TestLoginShells(t *testing.T) {
	for _, name := range []string{"sh", "bash", "zsh", "fish", "tcsh", "ksh93", "mksh"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := at(t, sshtest.StartSshdWithShell(t, lookUp(t, name)), reach.Native, "")
			p.is("cd /etc; export A=\"it's\"; f() { echo \"$1 $A $#\"; }; x='*'", 0, "")
			p.is(`f 'a  b' \'; echo "$x" !x ~root`, 0, "a  b it's 2\n* !x /root\n")
			p.is("pwd; cat; printf abc", 0, "/etc\nabc")
			if s, _ := p.ex.State(web); s.Directory != "/etc" || s.Ended != "" {
				t.Errorf("%+v", s)
			}
			if s := p.line("echo out; echo err >&2; (exit 7)"); s.out != "out\n" || s.err != "err\n" || s.Exit != 7 {
				t.Errorf("%+v", s)
			}
			p.is("echo $?", 0, "7\n")
		})
	}
}

// sh is a program that is sh on a host.
type sh struct {
	name        string
	mistake     bool // a mistake in the syntax leaves it alive
	interrupted bool // Ctrl-C in a loop leaves it alive
	arguments   bool // $1 and $# last
}

// TestShells: the host's sh may be any POSIX shell.
func TestShells(t *testing.T) {
	for _, kind := range []sh{
		{name: "dash", mistake: true, interrupted: true, arguments: true}, {name: "bash", mistake: true, interrupted: true, arguments: true},
		{name: "busybox", mistake: true, interrupted: true, arguments: true}, {name: "zsh", mistake: true, interrupted: true, arguments: true},
		{name: "ksh93", mistake: true, interrupted: true, arguments: true}, {name: "mksh"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			dir := sshtest.OpenDir(t, 0o755)
			if err := os.Symlink(lookUp(t, kind.name), filepath.Join(dir, "sh")); err != nil {
				t.Fatal(err)
			}
			s := sshtest.StartSshdWithShell(t, "/bin/dash", "SetEnv PATH="+dir+":/usr/bin:/bin")
			p := at(t, s, reach.Native, "")
			again := func() {
				t.Helper()
				if s, _ := p.ex.State(web); s.Ended != "" {
					p.ex.Forget(web)
				}
				p.is(`cd /etc; f() { printf "f\n"; }`, 0, "")
			}
			// the shell stays, and everything in it
			again()
			for _, line := range []string{
				"set -- a b", "exec >/dev/null; echo lost", "exec 3>/dev/null", "break", "for i in 1 2; do echo; break 2; done", "continue", "set -x; echo", "set +x", "IFS=0123456789/",
				"echo() { :; }", "unset -f echo", "alias ls=nosuch", "set -v", "set +v", "set -f", "cat", "nosuch", "cd /nosuch", "sleep 60 & sleep 60 >&2 2>&1 &",
			} {
				p.line(line)
				p.is("pwd; f", 0, "/etc\nf\n")
				if kind.arguments {
					p.is(`command echo "$#" "$2"`, 0, "2 b\n")
				}
			}
			p.line("kill %1 %2 2>/dev/null; unset PWD; IFS=' '")
			// a mistake in the syntax
			for _, line := range []string{"if", `echo "abc`, "(", "echo )", "'"} {
				if s := p.line(line); s.Exit <= 0 || s.err == "" {
					t.Errorf("%s: exit %d, %q", line, s.Exit, s.err)
				}
				if kind.mistake {
					p.is("f", 0, "f\n")
				}
				again()
			}
			// the shell ends, which is said; no line runs in another one
			for line, exit := range map[string]int{"exit 3": 3, "set -e; false": 1, "exec sh -c 'exit 5'": 5, "kill -9 $$": 137, "kill 0": 143} {
				if s := p.line(line); s.Exit != exit || s.Note != "its shell has ended" || s.Ran != fleet.RanYes {
					t.Errorf("%s: exit %d, %q, ran %s", line, s.Exit, s.Note, s.Ran)
				}
				waittest.Until(t, "the end of the shell", func() bool { s, _ := p.ex.State(web); return s.Ended != "" })
				if s := p.line("echo ran"); s.Ran != fleet.RanNo || s.out != "" || s.Status() != fleet.Unreachable {
					t.Errorf("%s: ran %s, %q", line, s.Ran, s.out)
				}
				again()
			}
			// Ctrl-C ends the command
			for _, line := range []string{
				"echo; sleep 60", "while :; do echo; sleep 60; done", "echo; while :; do :; done", "for i in 1 2; do for j in 1 2; do echo; sleep 60; done; done",
				"echo; sleep 60 | cat", "echo; (sleep 60; sleep 60); echo after", "echo; trap '' INT; sleep 60",
			} {
				start := time.Now()
				s := p.until(line)
				if s.Class != fleet.Cancelled || s.Ran != fleet.RanYes || time.Since(start) > 30*time.Second {
					t.Errorf("%s: %s, %s, after %v", line, s.Class, s.Err, time.Since(start))
				}
				if kind.interrupted && !strings.Contains(line, "trap") {
					p.is("pwd; f", 0, "/etc\nf\n")
				}
				again()
			}
		})
	}
}
