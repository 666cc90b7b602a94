package reach

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/safedir"
)

// holds is a directory of masters, and a server.
type holds struct {
	*sshtest.Sshd
	env func(string) string
	all string // the configuration of all hosts
}

func newHolds(t *testing.T, settings ...string) *holds {
	t.Helper()
	dir, err := os.MkdirTemp("", "kept") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := sshtest.StartSshd(t, settings...)
	env := func(name string) string {
		if name == "XDG_RUNTIME_DIR" {
			return dir
		}
		return os.Getenv(name)
	}
	return &holds{s, env, everywhere(t, s.User, s.Key, s.Port, s.HostKey)}
}

// executor reads lines of ssh_config before those of all hosts.
func (k *holds) executor(t *testing.T, engine Engine, lines string, warnings *bytes.Buffer, settings ...string) *Executor {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	put(t, file, lines+k.all, 0o600)
	p := Params{Params: route.Params{Getenv: k.env, Flags: conf.Flags{Config: file, Settings: settings}, Warnings: warnings}, Engine: engine}
	e, err := New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// path is the place of a host's master.
func (k *holds) path(t *testing.T, name string) string {
	t.Helper()
	plan, err := k.executor(t, Auto, "", nil).Planned(t.Context(), host.Host{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return plan.Host.ControlPath(safedir.Masters(k.env))
}

// keep keeps a connection to a host until the test, or the result, ends it.
func (k *holds) keep(t *testing.T, name string) (end func()) {
	t.Helper()
	c, err := k.executor(t, Native, "", nil).Open(t.Context(), host.Host{Name: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	l, err := mux.Listen(k.path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	over, s := make(chan error), &mux.Server{Conn: c}
	go func() { over <- s.Serve(ctx, l); close(over) }()
	end = func() { cancel(); c.Close(); <-over }
	t.Cleanup(end)
	return end
}

func (*holds) run(t *testing.T, e *Executor, name, line string) (fleet.Result, *sshtest.Told) {
	t.Helper()
	told := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1}, []host.Host{{Name: name}}, fleet.Command{Line: line}, e, told); err != nil {
		t.Fatal(err)
	}
	return told.Results()[0], told
}

// locked knows no host key: what works with it uses a connection that is kept.
const locked = "Host web gate\nUserKnownHostsFile none\n"

// TestKept: a connection that is kept to a host without a ControlPath is used without a word, by
// what runs commands on it, and not where ssh_config or a flag wants none.
func TestKept(t *testing.T) {
	k := newHolds(t)
	later := k.executor(t, Auto, locked, nil)
	if r, _ := k.run(t, later, "web", "true"); r.Class != fleet.HostKeyUnknown {
		t.Errorf("with nothing kept: %+v", r)
	}
	k.keep(t, "web")
	for _, c := range []struct {
		e  *Executor
		ok bool
	}{
		{later, true},
		{k.executor(t, Auto, locked, nil), true},
		{k.executor(t, Native, locked, nil), true},
		{k.executor(t, Auto, locked+"GSSAPIKeyExchange yes\n", nil), true}, // only ssh can log in
		{k.executor(t, Auto, locked+"Ciphers aes128-ctr\nMatch exec true\n", nil), true},
		{k.executor(t, OpenSSH, locked, nil), false}, // ssh knows no such directory
		{k.executor(t, Auto, locked+"ControlPath none\n", nil), false},
		{k.executor(t, Auto, locked+"GSSAPIKeyExchange yes\nControlPath none\n", nil), false},
		{k.executor(t, Auto, locked, nil, "ControlPath=none"), false},
	} {
		r, _ := k.run(t, c.e, "web", "true")
		if (r.Status() == fleet.OK) != c.ok || c.ok && (r.Engine != "master" || r.Note != "") {
			t.Errorf("%+v", r)
		}
		if p, err := c.e.Planned(t.Context(), host.Host{Name: "web"}); err != nil || (p.Engine == "master") != c.ok {
			t.Errorf("planned: %+v, %v", p, err)
		}
	}
}

// TestKeptJumpHost: hosts behind a jump host that is kept go through the connection there, with
// every engine.
func TestKeptJumpHost(t *testing.T) {
	k := newHolds(t)
	const through = locked + "Host inner\nHostName 127.0.0.1\nProxyJump gate\n"
	for _, kept := range []bool{false, true} {
		if kept {
			k.keep(t, "gate")
		}
		for _, engine := range []Engine{Native, OpenSSH} {
			r, _ := k.run(t, k.executor(t, engine, through, nil), "inner", "true")
			if (r.Status() == fleet.OK) != kept || r.Engine != string(engine) || r.Note != "" {
				t.Errorf("kept %v, %s: %+v", kept, engine, r)
			}
		}
	}
}

// TestDeadKept: the socket that a killed process leaves in our directory is passed over without a
// word; it is no master.
func TestDeadKept(t *testing.T) {
	k := newHolds(t)
	path := k.path(t, "web") // and that of gate, which has the same address
	dir, err := safedir.Make(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	dir.Close()
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false)
	dead.Close()
	warnings := &bytes.Buffer{}
	const through = "Host inner\nHostName 127.0.0.1\nProxyJump gate\n"
	for _, c := range []struct {
		name   string
		engine Engine
	}{{"web", Auto}, {"inner", Auto}, {"inner", OpenSSH}} {
		e := k.executor(t, c.engine, through, warnings)
		r, told := k.run(t, e, c.name, "true")
		if r.Status() != fleet.OK || r.Engine == "master" || r.Note != "" || told.Text(fleet.Stderr) != "" {
			t.Errorf("%s: %+v %q", c.name, r, told.Text(fleet.Stderr))
		}
		if p, err := e.Planned(t.Context(), host.Host{Name: c.name}); err != nil || p.Engine == "master" {
			t.Errorf("planned: %+v, %v", p, err)
		}
	}
	if warnings.Len() > 0 {
		t.Errorf("%s", warnings)
	}
}

// appears waits for a file.
func appears(t *testing.T, file string) {
	waittest.Until(t, file, func() bool { _, err := os.Stat(file); return err == nil })
}

// TestKeptIsLost: a command whose kept connection ends may have run, and is not run again.
func TestKeptIsLost(t *testing.T) {
	k := newHolds(t)
	end, file := k.keep(t, "web"), filepath.Join(t.TempDir(), "ran")
	var lost sync.WaitGroup
	lost.Go(func() {
		waittest.Until(t, file, func() bool { text, _ := os.ReadFile(file); return len(text) > 0 })
		end()
	})
	r, _ := k.run(t, k.executor(t, Auto, "", nil), "web", "echo x >>"+file+"; sleep 100")
	lost.Wait()
	if text, err := os.ReadFile(file); r.Class != fleet.Lost || r.Ran == fleet.RanNo || r.Attempts != 1 || string(text) != "x\n" || err != nil {
		t.Errorf("%+v, ran %q, %v", r, text, err)
	}
}

// TestKeptIsFull: where the server gives no further session on the kept connection, the command
// runs once over its own, and the kept one stays.
func TestKeptIsFull(t *testing.T) {
	k := newHolds(t, "MaxSessions 1")
	k.keep(t, "web")
	dir := t.TempDir()
	ssh := exec.Command("ssh", "-F", "none", "-S", k.path(t, "web"), "-o", "ProxyCommand=false", "web", "touch "+dir+"/in; exec cat")
	in, err := ssh.StdinPipe()
	if err == nil {
		err = ssh.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	appears(t, dir+"/in")
	e := k.executor(t, Auto, "", nil)
	r, _ := k.run(t, e, "web", "echo x >>"+dir+"/ran")
	text, err := os.ReadFile(dir + "/ran")
	if r.Status() != fleet.OK || r.Engine != "native" || !strings.Contains(r.Note, "got no further session") || strings.Contains(r.Note, "ended") || string(text) != "x\n" || err != nil {
		t.Errorf("%+v, ran %q, %v", r, text, err)
	}
	in.Close()
	if err := ssh.Wait(); err != nil {
		t.Error(err)
	}
	waittest.Until(t, "a session that is free", func() bool { r, _ = k.run(t, e, "web", "true"); return r.Engine == "master" })
}
