package shell_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/sshtest"
)

// TestEngines: every engine and a ControlMaster give a host its shell, also where the server has
// one session for each connection.
func TestEngines(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshdForOther(t, "MaxSessions 1")
	many := sshtest.StartSshd(t)
	socket := filepath.Join(sshtest.OpenDir(t, 0o700), "m")
	master := exec.Command("ssh", "-F", "none", "-M", "-S", socket, "-N", "-i", many.Key, "-p", fmt.Sprint(many.Port), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", many.User+"@127.0.0.1")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Process.Kill(); master.Wait() })
	waittest.Until(t, "the master", func() bool { _, err := os.Stat(socket); return err == nil })
	for _, kind := range []struct {
		name, by string
		server   *sshtest.Sshd
		engine   reach.Engine
		lines    string
	}{
		{"native", "shell to 127.0.0.1:" + fmt.Sprint(s.Port), s, reach.Native, ""}, {"openssh", "shell to web", s, reach.OpenSSH, ""},
		{"a master", "master to ", many, reach.Native, "Host *\nControlPath " + socket + "\nIdentityFile none\n"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			p := at(t, kind.server, kind.engine, kind.lines)
			p.is("cd /etc; x=1", 0, "")
			if s := p.until("echo; sleep 60"); s.Class != fleet.Cancelled || s.Ran != fleet.RanYes {
				t.Errorf("%+v", s.Outcome)
			}
			p.is("echo $x $PWD", 0, "1 /etc\n")
			if s := p.line("echo out; echo err >&2"); s.out != "out\n" || s.err != "err\n" || s.Engine+" to "+s.Addr != kind.by {
				t.Errorf("%q, %q, by %s to %s", s.out, s.err, s.Engine, s.Addr)
			}
			// files go over the same connection, or another one
			named := ""
			list := func(ctx context.Context, _ host.Host, c fleet.Channel) error {
				if _, err := c.Write([]byte{0, 0, 0, 5, 1, 0, 0, 0, 3}); err != nil { // SSH_FXP_INIT
					return err
				}
				answer := make([]byte, 5)
				_, err := io.ReadFull(c, answer)
				named = fmt.Sprint(answer[4])
				return err
			}
			if s := p.with(fanout.Params{}, fleet.Command{Line: "sftp", Dialogue: list}); s.Class != fleet.NoFailure || s.Exit != 0 || named != "2" {
				t.Errorf("SFTP: %+v, %s", s.Outcome, named)
			}
			p.is("echo $x", 0, "1\n")
		})
	}
}

// TestOutput: all of it comes, and none of another line, whatever it is and however much.
func TestOutput(t *testing.T) {
	t.Parallel()
	p := at(t, sshtest.StartSshdForOther(t), reach.Native, "")
	const size = 50 << 20
	for _, to := range []fleet.Stream{fleet.Stdout, fleet.Stderr} {
		sum, n := sha256.New(), 0
		told := &sshtest.Told{OnOutput: func(e fleet.Event) error {
			if e.Stream == to {
				n += len(e.Data)
				sum.Write(e.Data)
			}
			return nil
		}}
		line := fmt.Sprintf("seq 100000000 | head -c %d", size)
		if to == fleet.Stderr {
			line += " >&2"
		}
		if r := p.told(fanout.Params{}, fleet.Command{Line: line}, told); r.Exit != 0 || n != size {
			t.Errorf("%s: exit %d, %d bytes", line, r.Exit, n)
		}
		want, err := exec.Command("sh", "-c", fmt.Sprintf("seq 100000000 | head -c %d | sha256sum", size)).Output()
		if err != nil || !strings.HasPrefix(string(want), fmt.Sprintf("%x", sum.Sum(nil))) {
			t.Errorf("%s: other bytes", line)
		}
	}
	p.is("i=0; while [ $i -lt 255 ]; do i=$((i+1)); printf \"\\\\$(printf %o $i)\"; done; printf '\\000'", 0, string(append(allBytes(), 0)))
	p.is("printf 'no end'; printf 'of line' >&2", 0, "no end")
	if s := p.with(fanout.Params{MaxOutput: 1000}, fleet.Command{Line: "yes"}); s.Class != fleet.OutputLimit || len(s.out) != 1000 {
		t.Errorf("%+v, %d bytes", s.Outcome, len(s.out))
	}
	if s := p.line("ps -ef; set; trap; echo end"); !strings.HasSuffix(s.out, "\nend\n") || !strings.Contains(s.out, "sshpace_c=") {
		t.Errorf("our own words cut it: %q", s.out)
	}
}

func allBytes() (all []byte) {
	for i := 1; i < 256; i++ {
		all = append(all, byte(i))
	}
	return all
}

// TestBackground: a job in the background does not hold its line up; what it writes later is shown
// with the next line, and Ctrl-C does not end it.
func TestBackground(t *testing.T) {
	t.Parallel()
	p := at(t, sshtest.StartSshdForOther(t), reach.Native, "")
	start := time.Now()
	p.is("(read x </dev/null; sleep 0.3; echo later; echo err >&2; exec sleep 100) & echo now", 0, "now\n")
	if time.Since(start) > time.Minute {
		t.Errorf("it took %v", time.Since(start))
	}
	waittest.Until(t, "the job's output", func() bool { return strings.Contains(p.line("true").out, "later\n") })
	if s := p.until("echo; sleep 60"); s.Class != fleet.Cancelled {
		t.Errorf("%+v", s.Outcome)
	}
	p.is("kill -0 $! && kill $!", 0, "")
}

// TestTimes: a line that takes too long is ended; a second Ctrl-C leaves it running, and gives the
// shell up.
func TestTimes(t *testing.T) {
	t.Parallel()
	p := at(t, sshtest.StartSshdForOther(t), reach.Native, "")
	p.is("cd /etc", 0, "")
	if s := p.with(fanout.Params{CommandTimeout: 200 * time.Millisecond}, fleet.Command{Line: "sleep 60"}); s.Class != fleet.CommandTimeout || s.Ran != fleet.RanYes {
		t.Errorf("%+v", s.Outcome)
	}
	p.is("pwd", 0, "/etc\n")
	left := filepath.Join(sshtest.OpenDir(t, 0o777), "left")
	drain, first := context.WithCancel(t.Context())
	hard, again := context.WithCancelCause(t.Context())
	told := &sshtest.Told{OnOutput: func(fleet.Event) error {
		first()
		time.AfterFunc(100*time.Millisecond, func() { again(errors.New("again")) })
		return nil
	}}
	line := "(trap '' INT; echo; sleep 0.5; touch " + left + ")"
	_, err := fanout.Run(hard, fanout.Params{RetryFor: -1, Drain: drain}, []host.Host{web}, fleet.Command{Line: line}, p.ex, told)
	if err == nil || told.Results()[0].Ran != fleet.RanYes {
		t.Errorf("%v, %+v", err, told.Results())
	}
	waittest.Until(t, "the command that was left", func() bool { _, err := os.Stat(left); return err == nil })
	if s := p.line("echo ran"); s.Ran != fleet.RanNo || !strings.Contains(s.Err, "left running") {
		t.Errorf("%+v", s.Outcome)
	}
}

// TestLost: a connection that is lost loses the shell. No line runs in another one, or twice.
func TestLost(t *testing.T) {
	t.Parallel()
	p := at(t, sshtest.StartSshdForOther(t), reach.Native, "")
	kill := "kill -9 $(ps -o ppid= -p $(ps -o ppid= -p $PPID))" // the server's process
	home := p.line("pwd").out
	s := p.line("cd /etc; echo begun; " + kill + "; sleep 60")
	if s.Class != fleet.Lost || s.Ran != fleet.RanUnknown || s.out != "begun\n" {
		t.Errorf("%+v, %q", s.Outcome, s.out)
	}
	if s := p.line("echo ran"); s.Ran != fleet.RanNo || s.out != "" {
		t.Errorf("%+v", s.Outcome)
	}
	p.ex.Forget(web)
	p.is("pwd", 0, home)
	p.is("(sleep 0.3; "+kill+") >/dev/null 2>&1 &", 0, "")
	waittest.Until(t, "the loss", func() bool { s, _ := p.ex.State(web); return s.Ended != "" })
	if s := p.line("echo ran"); s.Ran != fleet.RanNo || s.Status() != fleet.Unreachable {
		t.Errorf("%+v", s.Outcome)
	}
}

// TestNoShell: where no shell begins nothing runs, and what the server says is told.
func TestNoShell(t *testing.T) {
	t.Parallel() // it waits most of the time
	for command, want := range map[string]string{
		"echo not available; exit 1":                         "no shell has begun: not available",
		`head -c 3 >/dev/null; eval "$SSH_ORIGINAL_COMMAND"`: "no shell has begun in time",
	} {
		s := at(t, sshtest.StartSshd(t, "ForceCommand "+command), reach.Native, "").line("echo ran")
		if s.Ran != fleet.RanNo || !strings.Contains(s.Err, want) || s.out != "" || s.Status() != fleet.Unreachable {
			t.Errorf("%s: ran %s, %q: %s", command, s.Ran, s.out, s.Err)
		}
	}
	p := at(t, sshtest.StartSshd(t, `ForceCommand echo hello; echo there >&2; eval "$SSH_ORIGINAL_COMMAND"`), reach.Native, "")
	if s := p.line("echo ran"); s.out != "ran\n" || s.err != "" {
		t.Errorf("start-up files print: %q, %q", s.out, s.err)
	}
}

// TestNotALine: what cannot be one line for a shell does not run.
func TestNotALine(t *testing.T) {
	p := at(t, sshtest.StartSshdForOther(t), reach.Native, "")
	for _, c := range []fleet.Command{{Line: "echo\necho"}, {Line: "echo \x00"}, {Line: "cat", Input: fleet.SpoolBytes(nil)}} {
		if s := p.with(fanout.Params{}, c); s.Ran != fleet.RanNo || s.Class != fleet.Local {
			t.Errorf("%q: %+v", c.Line, s.Outcome)
		}
	}
	p.is("printf %s '"+strings.Repeat("x", 100_000)+"' | wc -c", 0, "100000\n")
	if s := p.line(string(bytes.Repeat([]byte{0xff, '\\'}, 10))); s.Exit != 127 {
		t.Errorf("%+v", s.Outcome)
	}
}
