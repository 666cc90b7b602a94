package reboot_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/reboot"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// machine is a server whose boot id is a file, and which takes no logins while another is there.
type machine struct {
	*sshtest.Sshd
	id, nologin string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test mounts a boot id, as root, for a server of its own")
	}
	dir := sshtest.OpenDir(t, 0o777)
	m := &machine{id: filepath.Join(dir, "id"), nologin: filepath.Join(dir, "nologin")}
	if err := os.WriteFile(m.id, []byte("first\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(m.id, 0o666); err != nil {
		t.Fatal(err)
	}
	m.Sshd = sshtest.StartSshdThatBoots(t, m.nologin, "mount --bind "+m.id+" /proc/sys/kernel/random/boot_id")
	return m
}

// run runs a command on the machine, and returns its end, its output, and how often somebody was
// told that hosts are waited for.
func (m *machine) run(t *testing.T, engine reach.Engine, line string, timeout time.Duration) (fleet.Result, string, int32) {
	t.Helper()
	p := reach.Params{Params: route.Params{Getenv: os.Getenv}, Engine: engine}
	p.Flags = conf.Flags{Config: "none", Port: uint16(m.Port), User: m.User, Settings: []string{
		"UserKnownHostsFile=" + sshtest.KnownHostsFile(t, "* "+sshtest.AuthorizedLine(m.HostKey)), "GlobalKnownHostsFile=none", "IdentityAgent=none", "IdentityFile=" + m.Key,
	}}
	plain, err := reach.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var waiting atomic.Int32
	executor, sink := &reboot.Executor{Executor: plain, Plain: plain, Waiting: func() { waiting.Add(1) }}, &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{CommandTimeout: timeout}, []host.Host{{Name: "127.0.0.1"}}, fleet.Command{Line: line}, executor, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()[0], sink.Text(fleet.Stdout) + sink.Text(fleet.Stderr), waiting.Load()
}

// TestReboot: the command runs once, its connection may end, logins are refused for a while, and
// then another boot id ends the wait.
func TestReboot(t *testing.T) {
	m := newMachine(t)
	for engine, line := range map[reach.Engine]string{
		reach.Native:  "sleep 0.3; kill -9 $PPID; sleep 60", // the connection is lost, perhaps with output
		reach.OpenSSH: "exit 0",                             // and the host goes down later
	} {
		ran := m.id + string(engine)
		down := "echo before; echo err >&2; echo x >>" + ran + "; (sleep 0.5; touch " + m.nologin + "; echo " + string(engine) + " >" + m.id + "; sleep 1; rm " + m.nologin + ") >/dev/null 2>&1 & "
		r, said, waiting := m.run(t, engine, down+line, time.Minute)
		text, _ := os.ReadFile(ran)
		if r.Status() != fleet.OK || r.Ran != fleet.RanYes || !strings.HasPrefix(r.Note, "back with another boot id, ") || string(text) != "x\n" || waiting != 1 {
			t.Errorf("%s: %+v; ran %q", engine, r, text)
		}
		if said != "before\nerr\n" && (engine == reach.OpenSSH || !strings.HasPrefix("before\nerr\n", said)) {
			t.Errorf("%s: it said %q", engine, said)
		}
	}
}

// TestNoReboot: a command that fails is not waited for, one that reboots nothing is until the time
// is over, and a host without a boot id is not known to be back.
func TestNoReboot(t *testing.T) {
	m := newMachine(t)
	if r, _, waiting := m.run(t, reach.Native, "exit 3", time.Minute); r.Exit != 3 || r.Class != fleet.NoFailure || waiting != 0 {
		t.Errorf("a command that fails: %+v", r)
	}
	if r, _, _ := m.run(t, reach.Native, "true", 3*time.Second); r.Class != fleet.CommandTimeout || r.Ran != fleet.RanYes || r.Err != "not seen back after the command: it answers, and has not rebooted" {
		t.Errorf("no reboot: %+v", r)
	}
	if r, _, _ := m.run(t, reach.Native, "touch "+m.nologin, 3*time.Second); r.Class != fleet.CommandTimeout || !strings.HasPrefix(r.Err, "not seen back after the command: Connection closed by 127.0.0.1") {
		t.Errorf("it does not come back: %+v", r)
	}
	os.Remove(m.nologin)
	if err := os.Truncate(m.id, 0); err != nil {
		t.Fatal(err)
	}
	if r, _, waiting := m.run(t, reach.Native, "true", time.Minute); r.Class != fleet.NoStatus || r.Status() != fleet.Failed || !strings.HasPrefix(r.Err, "not known whether") || waiting != 0 {
		t.Errorf("no boot id: %+v", r)
	}
}
