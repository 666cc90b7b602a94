package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// checkScript is what hosts run while they are watched. Each uses one stream: nobody knows which of
// two comes first.
const checkScript = `case $1 in
web1|web5) { printf '%s\n' first $1 'red: \033[31m\033]0;x\007'; seq 9; echo checking the archive; } >&2; until [ -e go ]; do sleep 0.1; done;;
web2) echo /var: 97% used; exit 3;;
web3) echo all is well;;
esac
`

// tmux is a terminal of its own.
type tmux struct {
	t      *testing.T
	socket string
}

func startTmux(t *testing.T, dir string, width, height int, line string) *tmux {
	t.Helper()
	x := &tmux{t, filepath.Join(dir, "tmux")}
	x.do("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height), "-c", dir, "env", "-i", "PATH="+os.Getenv("PATH")+":/usr/sbin", "HOME="+dir, "TERM=screen", "sh", "-c", line)
	t.Cleanup(func() { x.do("kill-server") })
	return x
}

func (x *tmux) do(args ...string) string {
	x.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", x.socket}, args...)...).CombinedOutput()
	if err != nil {
		x.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return string(out)
}

// screen is what the terminal shows, without blanks at the ends of lines.
func (x *tmux) screen() string { x.t.Helper(); return x.do("capture-pane", "-p") }

// after sends keys and waits until the screen has a text; it returns the screen.
func (x *tmux) after(text string, keys ...string) (screen string) {
	x.t.Helper()
	if len(keys) > 0 {
		x.do(append([]string{"send-keys"}, keys...)...)
	}
	if !waittest.Comes(func() bool { screen = x.screen(); return strings.Contains(screen, text) }) {
		x.t.Fatalf("%q: no %q on\n%s", keys, text, screen)
	}
	return screen
}

// matches sends keys and waits until the screen is as a pattern says.
func (x *tmux) matches(pattern string, keys ...string) {
	x.t.Helper()
	x.do(append([]string{"send-keys"}, keys...)...)
	if re := regexp.MustCompile(pattern); !waittest.Comes(func() bool { return re.MatchString(x.screen()) }) {
		x.t.Errorf("%q: no %s on\n%s", keys, pattern, x.screen())
	}
}

// five makes a directory with a configuration for hosts, of which the fourth refuses, and a script,
// and returns it, and a line that runs sshpace there.
func five(t *testing.T, command string) (dir, line string) {
	t.Helper()
	s, dir := sshtest.StartSshd(t), t.TempDir()
	d := dead{port: s.Port, user: s.User, key: s.Key, hostKey: s.HostKey}
	d.write(t, dir)
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config": "Host web4\n  Port 9\n" + string(config), "check.sh": "cd " + dir + "\n" + checkScript} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir, sshpaceProgram(t) + " " + command + " -F config -w 'web[1-5]'"
}

// watched is a terminal in which a run on five hosts is watched, of which two wait for the file go.
func watched(t *testing.T, width, height int) (x *tmux, dir string) {
	t.Helper()
	dir, line := five(t, "run --watch --per-host")
	x = startTmux(t, dir, width, height, line+" -- sh "+dir+"/check.sh %h; echo code $?; cat")
	x.after("web3 ok")
	x.after("web1 running")
	return x, dir
}

// TestWatch: the guide's screen is what a run shows in a terminal; keys go through the output of
// hosts and their differences; after the run comes the summary, with the exit code of run.
func TestWatch(t *testing.T) {
	t.Parallel()
	x, dir := watched(t, 80, 24)
	guide, err := os.ReadFile("../../doc/guide/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(string(guide), " ./check.sh %h\n")
	want, _, _ = strings.Cut(want, "```")
	if !waittest.Comes(func() bool { return comparable(x.screen()) == comparable(want) }) {
		t.Errorf("-guide +shown:\n%s", cmp.Diff(comparable(want), comparable(x.screen())))
	}
	x.after("=> red: ", "Down", "Down", "Enter", "Home")
	x.matches(`^web1: running .*\n=> checking the archive\n`, "/", "archive", "Enter")
	x.matches(`^web1 and web5\n(.*\n)*.*web1 +\| web5\n`, "q", "Space", "d")
	x.do("resize-window", "-x", "40", "-y", "10")
	x.after("q back", "?")
	x.after("Ctrl-C     end the run; again: at once\n")
	x.after("? help  Enter output", "q", "q")
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	x.after("The run has ended.")
	x.do("resize-window", "-x", "80", "-y", "24")
	screen := x.after("code 1", "q")
	for _, part := range []string{"web4 (1) =: unreachable: ", "5 hosts: 3 ok, 1 failed, 1 unreachable in ", "failed: web2\n"} {
		if !strings.Contains(screen, part) || strings.Contains(screen, "help") {
			t.Errorf("no %q alone on\n%s", part, screen)
		}
	}
}

// comparable is a screen without times and empty lines, and with the same command.
func comparable(screen string) string {
	for _, change := range [][2]string{{` +[0-9.m]+s\b`, " 1s"}, {`1 unreachable: .*`, "1 unreachable"}, {`\n\n+`, "\n"}} {
		screen = regexp.MustCompile(change[0]).ReplaceAllString(screen, change[1])
	}
	return screen
}

// TestWatchInterrupted: Ctrl-C ends a run that is watched, and its commands, as one that is not.
func TestWatchInterrupted(t *testing.T) {
	t.Parallel()
	x, _ := watched(t, 40, 10)
	x.after("code 130", "C-c")
	x.do("resize-window", "-x", "80", "-y", "24")
	if screen := x.screen(); !strings.Contains(screen, "web[1,5] (2) =: interrupted while the command was running") {
		t.Error(screen)
	}
}

// TestWatchLosesTerminal: a run ends with its terminal, also where the process above it keeps the
// signal from it.
func TestWatchLosesTerminal(t *testing.T) {
	t.Parallel()
	dir, line := five(t, "run --watch")
	x := startTmux(t, dir, 80, 24, "trap : HUP; "+line+" -- sleep 1000; echo code $? >ended")
	x.after("web1 running")
	x.do("new-window", "-d", "cat")
	x.do("kill-window", "-t", ":0")
	ended := func() string { text, _ := os.ReadFile(filepath.Join(dir, "ended")); return string(text) }
	if !waittest.Comes(func() bool { return ended() == "code 129\n" }) {
		t.Errorf("%q", ended())
	}
}

// TestWatchShell: a line of a shell on many hosts is watched, and the last one is shown again.
func TestWatchShell(t *testing.T) {
	t.Parallel()
	dir, line := five(t, "shell")
	x := startTmux(t, dir, 80, 24, line)
	x.after("4 of 5 hosts ")
	for _, typed := range []string{":watch echo one; cd /; false", ":watch"} {
		x.do("send-keys", "-l", typed)
		if screen := x.after("The run has ended.", "Enter"); !strings.Contains(screen, " web1 exit 1 ") || strings.Contains(screen, "web4") {
			t.Errorf("%s:\n%s", typed, screen)
		}
		x.after("-> one", "Enter")
		x.after("The run has ended.", "q")
		x.after("4 of 5 hosts />", "q")
	}
}

// TestWatchNowhere: without a terminal, and on one that cannot be redrawn, --watch is an error
// before anything is done.
func TestWatchNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, errs := start(t, dir, sshpaceProgram(t), "run", "--watch", "-w", "nowhere", "true")
	if err := cmd.Wait(); codeOf(cmd) != 2 || strings.Count(errs.String(), "\n") != 2 {
		t.Errorf("%v\n%s", err, errs)
	}
	cmd, errs = start(t, dir, sshpaceProgram(t), "run", "--watch", "--json", "-w", "nowhere", "true")
	if err := cmd.Wait(); codeOf(cmd) != 2 || !strings.Contains(errs.String(), "--watch excludes --json") {
		t.Errorf("%v\n%s", err, errs)
	}
	x := startTmux(t, dir, 80, 24, "TERM=dumb "+sshpaceProgram(t)+" run --watch -w nowhere true; echo code $?; cat")
	x.after("code 2")
}
