package reach_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/sshtest"
)

// engines are all that carry a host.
var engines = map[string]engine{
	"native":  {Reach: native},
	"openssh": {NoSignals: true, NoExec: true, Drawn: true, Reach: forked},
	"master":  {From: sshtest.AtOpen, Drawn: true, Reach: over(startMaster)},
	"kept":    {From: sshtest.AtOpen, Drawn: true, Brief: true, Reach: over(startKept)},
}

// TestConformance: each of them does what every executor has to do, and leaves nothing behind. Most
// of it is waiting, so all waits at once; but hostile servers flood, which needs the machine for
// itself.
func TestConformance(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	for name, e := range engines {
		t.Run("hostile/"+name, e.hostile)
	}
	for part, test := range map[string]func(engine, *testing.T){
		"commands": engine.commands, "ends": engine.ends, "dialogues": engine.dialogues, "refusals": engine.refusals, "cuts": engine.cuts, "early": engine.early,
	} {
		for name, e := range engines {
			t.Run(part+"/"+name, func(t *testing.T) { t.Parallel(); test(e, t) })
		}
	}
}

// native makes an engine of ours.
func native(t testing.TB, s servers) fleet.Executor {
	e := dial.New(byPort{
		User: s.User, HostKeys: fixedKey{s.HostKey}, ConnectTimeout: s.timeout(), Identity: dial.Identity{Files: []string{s.Key}},
	}, dial.Options{})
	t.Cleanup(func() { e.Close() })
	return e
}

// byPort is the same target at every port.
type byPort dial.Target

func (r byPort) Target(_ context.Context, h host.Host) (*dial.Target, error) {
	t := dial.Target(r)
	t.HostName, t.Port = h.Name, int(h.Port)
	return &t, nil
}

// fixedKey is the one host key that is right.
type fixedKey struct{ key ssh.PublicKey }

func (f fixedKey) Algorithms(context.Context, string, int, []string) ([]string, error) {
	return []string{f.key.Type()}, nil
}

func (f fixedKey) Check(_ context.Context, name string, _ int, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), f.key.Marshal()) {
		return &dial.Error{Class: fleet.HostKeyChanged, Text: "host key of " + name + " has changed", Hint: "look"}
	}
	return nil
}

// forked makes an engine that starts ssh.
func forked(t testing.TB, s servers) fleet.Executor {
	file := filepath.Join(t.TempDir(), "known_hosts")
	if err := os.WriteFile(file, []byte("* "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	return forkssh.New(forkssh.Options{ConnectTimeout: s.timeout(), Flags: conf.Flags{
		Config: "none", Identities: []string{s.Key}, User: s.User, Settings: []string{"IdentityAgent=none", "UserKnownHostsFile=" + file, "GlobalKnownHostsFile=none"},
	}})
}

// masters runs on each host over the master of its port.
type masters struct {
	path    map[uint16]string
	servers servers
}

func (masters) FDs() int { return 1 }

func (m masters) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	s := mux.Session{Path: m.path[h.Port], Command: cmd, Timeout: m.servers.timeout()}
	o, err := s.Run(ctx, a)
	if err == nil {
		return o
	}
	o = fleet.Outcome{Class: fleet.Local, Exit: -1, Err: err.Error(), Cause: err}
	if ctx.Err() != nil {
		o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
	}
	return o
}

// over starts a master for each server.
func over(start func(t testing.TB, s servers, port int, path string)) func(testing.TB, servers) fleet.Executor {
	return func(t testing.TB, s servers) fleet.Executor {
		m := masters{path: map[uint16]string{}, servers: s}
		dir, err := os.MkdirTemp("", "mux") // short: a socket's path has 108 bytes at most
		if err != nil {
			t.Error(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		for _, port := range s.Ports {
			m.path[uint16(port)] = filepath.Join(dir, fmt.Sprint(port))
		}
		var all sync.WaitGroup
		for ports := range slices.Chunk(s.Ports, 10) {
			all.Go(func() {
				for _, port := range ports {
					start(t, s, port, m.path[uint16(port)])
				}
			})
		}
		all.Wait()
		return m
	}
}

// startKept serves a connection of ours.
func startKept(t testing.TB, s servers, port int, path string) {
	e := native(t, s).(*dial.Engine)
	c, err := e.Open(context.Background(), &dial.Target{
		HostName: "127.0.0.1", Port: port, User: s.User, HostKeys: fixedKey{s.HostKey}, Identity: dial.Identity{Files: []string{s.Key}},
	}, nil)
	if err != nil {
		t.Error(err)
		return
	}
	l, err := mux.Listen(path)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, end := context.WithCancel(context.Background())
	over := make(chan struct{})
	go func() { _ = (&mux.Server{Conn: c}).Serve(ctx, l); close(over) }()
	t.Cleanup(func() { end(); <-over; <-c.Done() })
}

func startMaster(t testing.TB, s servers, port int, path string) {
	t.Helper()
	cmd := exec.Command("ssh", "-F", "none", "-M", "-S", path, "-N", "-i", s.Key, "-o", "IdentityAgent=none", "-p", fmt.Sprint(port),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-l", s.User, "127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	if !waittest.Comes(sshtest.Listens("unix", path)) { // once it is let in
		t.Error("the master did not begin")
	}
}
