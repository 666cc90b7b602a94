package mux_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/sshtest"
)

// soon is how long a server may be silent in these tests.
const soon = 500 * time.Millisecond

// cold is the installed ssh over the master, which can also connect by itself.
func (s *served) cold(sshd *sshtest.Sshd, args ...string) *exec.Cmd {
	return s.ssh(append([]string{"-i", sshd.Key, "-o", "IdentityAgent=none", "-p", fmt.Sprint(sshd.Port), "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-l", sshd.User, "-n"}, args...)...)
}

// listens reports whether there is a socket.
func (s *served) listens() bool { return sshtest.Listens("unix", s.path)() }

// TestServerSilent: no ssh waits for a server that hangs. What it asks for fails before anything
// has run, and it connects by itself; the next one finds no socket. Sessions live on, and the
// socket is back as soon as the server is.
func TestServerSilent(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t)
	s := serve(t, sshd.Port, sshd.User, sshd.Key, soon)
	ran := filepath.Join(sshtest.OpenDir(t, 0o777), "ran")
	held := s.ssh("x", "cat")
	in, out := waittest.Piped(t, held)
	echo := func() {
		t.Helper()
		io.WriteString(in, "here\n")
		if got := make([]byte, 5); !reads(out, got) || string(got) != "here\n" {
			t.Errorf("the session says %q", got)
		}
	}
	echo()
	for name, c := range map[string]struct {
		args []string
		says string
		exit int
	}{
		"session":   {[]string{"127.0.0.1", "echo once >> " + ran + "; echo says"}, "says", 0},
		"subsystem": {[]string{"-s", "127.0.0.1", "sftp"}, "", 0},
		"forward":   {[]string{"-R", "0:127.0.0.1:1", "127.0.0.1", "echo once >> " + ran + "; echo says"}, "says", 0},
		"stdio":     {[]string{"-W", fmt.Sprintf("127.0.0.1:%d", sshd.Port), "127.0.0.1"}, "the server does not answer", 255},
	} {
		os.Remove(ran)
		sshd.Signal(t, syscall.SIGSTOP)
		cmd := s.cold(sshd, c.args...)
		text, _ := cmd.CombinedOutput()
		greeted := !bytes.Contains(text, []byte("SSH-2.0-")) // otherwise the server was in doubt already
		if exit := cmd.ProcessState.ExitCode(); greeted && (exit != c.exit || !strings.Contains(string(text), c.says)) {
			t.Errorf("%s: %s, exit %d", name, text, exit)
		}
		if s.listens() {
			t.Errorf("%s: the socket is left", name)
		}
		next := s.cold(sshd, "-q", "127.0.0.1", "echo cold")
		if text, err := next.CombinedOutput(); string(text) != "cold\n" || err != nil {
			t.Errorf("%s, the next one: %s, %v", name, text, err)
		}
		sshd.Signal(t, syscall.SIGCONT)
		waittest.Until(t, "the socket", s.listens)
		echo() // after all that the server was asked for before
		if text, err := os.ReadFile(ran); c.says == "says" && string(text) != "once\n" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	sshd.Signal(t, syscall.SIGSTOP)
	ours := &shared{path: s.path}
	if r := run(t, ours, fanout.Params{}, fleet.Command{Line: "true"}, &sshtest.Told{}); ours.err == nil || strings.Contains(ours.err.Error(), "in time") {
		t.Errorf("our client: %v, %+v", ours.err, r)
	}
	sshd.Signal(t, syscall.SIGCONT)
	in.Close()
	if err := held.Wait(); err != nil {
		t.Error(err)
	}
	waittest.Until(t, "the end of all sessions", func() bool { return s.Sessions() == 0 })
}

func reads(r io.Reader, p []byte) bool {
	_, err := io.ReadFull(r, p)
	return err == nil
}

// TestServerCheck: while it is in doubt whether a server lives, ssh is not greeted, so that also -W
// connects by itself. Without sessions a server that stays silent is given up.
func TestServerCheck(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t)
	s := serve(t, sshd.Port, sshd.User, sshd.Key, soon)
	s.Check()
	if out, err := s.cold(sshd, "-q", "127.0.0.1", "echo lives").CombinedOutput(); string(out) != "lives\n" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	sshd.Signal(t, syscall.SIGSTOP)
	defer sshd.Signal(t, syscall.SIGCONT)
	s.Check()
	out, err := s.cold(sshd, "-W", fmt.Sprintf("127.0.0.1:%d", sshd.Port), "127.0.0.1").CombinedOutput()
	if !bytes.Contains(out, []byte("SSH-2.0-")) {
		t.Errorf("%s, %v", out, err)
	}
	if err := <-s.over; !errors.Is(err, mux.ErrSilent) {
		t.Error(err)
	}
}

// TestServerDescriptors: where there are no descriptors left for clients, ssh does not wait for
// them.
func TestServerDescriptors(t *testing.T) {
	s, sshd := serveSshd(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 200
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	ssh := s.cold(sshd, "-q", "127.0.0.1", "echo cold")
	cmd := exec.Command("sh", append([]string{"-c", `read go; exec timeout 60 "$0" "$@"`}, ssh.Args...)...)
	in, out := waittest.Piped(t, cmd)
	var all []*os.File
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			break
		}
		all = append(all, f)
	}
	io.WriteString(in, "\n")
	text, err := io.ReadAll(out)
	for _, f := range all {
		f.Close()
	}
	if err := errors.Join(err, cmd.Wait()); err != nil || string(text) != "cold\n" {
		t.Errorf("%q, %v", text, err)
	}
	waittest.Until(t, "the socket", s.listens)
	if out, exit := s.says(t, "x", "echo over"); out != "over\n" || exit != 0 {
		t.Errorf("afterwards %q, exit %d", out, exit)
	}
}

// TestDeadSocket: what is left of a master that was killed holds nobody up.
func TestDeadSocket(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t)
	path := filepath.Join(sshtest.OpenDir(t, 0o700), "m")
	l, err := mux.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	l.UnixListener.Close() // as if the process was killed
	s := &served{path: path}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"127.0.0.1", "echo cold; exit 7"}, "cold"},
		{[]string{"-W", fmt.Sprintf("127.0.0.1:%d", sshd.Port), "127.0.0.1"}, "SSH-2.0-"},
		{[]string{"-o", "ControlMaster=auto", "127.0.0.1", "echo cold; exit 7"}, "cold"},
	} {
		cmd := s.cold(sshd, append([]string{"-o", "LogLevel=ERROR"}, c.args...)...)
		out, _ := cmd.CombinedOutput()
		if exit := cmd.ProcessState.ExitCode(); !strings.Contains(string(out), c.says) || strings.Count(string(out), "\n") > 2 || exit != 7 && c.says == "cold" {
			t.Errorf("%q: %s, exit %d", c.args, out, exit)
		}
	}
}
