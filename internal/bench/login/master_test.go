package login

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"sshpace/internal/bench/bed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
)

// endsOf are ends with the installed ssh and a server.
func endsOf(t *testing.T, s *sshtest.Sshd) *Ends {
	t.Helper()
	ssh, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known")
	if out, err := exec.Command("ssh", "-F", "none", "-i", s.Key, "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new",
		"-o", "UserKnownHostsFile="+known, "-p", strconv.Itoa(s.Port), s.User+"@127.0.0.1", "true").CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	return &Ends{Dir: t.TempDir(), traffic: &Traffic{}, Bed: bed.Bed{SSH: ssh, Connect: time.Minute, Destination: openssh.Destination{
		Host: s.User + "@127.0.0.1", Flags: conf.Flags{
			Config: "none", Identities: []string{s.Key}, Settings: []string{"IdentityAgent=none", "UserKnownHostsFile=" + known}, Port: uint16(s.Port),
		},
	}}}
}

// TestNoSessionLeft: where the server gives a master no further session, or the master is dead, ssh
// would make a connection of its own. That is no session over the master, and none is made.
func TestNoSessionLeft(t *testing.T) {
	s := sshtest.StartSshd(t, "MaxSessions 1")
	e := endsOf(t, s)
	viaJump := *e
	viaJump.Destination.Jump = "jump.invalid" // of the master's way only
	master := func() (m *Master, end func() error) {
		t.Helper()
		own := *e
		own.Dir = t.TempDir() // a socket of its own, or the second would leave all to the first
		m, err := own.StartMaster(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		end = sync.OnceValue(m.Close)
		t.Cleanup(func() { _ = end() })
		return m, end
	}
	m, _ := master()
	if l, err := e.Watch(t.Context(), viaJump.SessionCase("", m.socket).Argv); err != nil || l.Span(record.PhaseKex) > 0 {
		t.Fatalf("a session over the master: %v, %+v", err, l)
	}
	m, end := master() // of which no session was ever open
	c := viaJump.SessionCase("", m.socket)
	holder := exec.Command("ssh", append(append([]string{"-S", m.socket}, e.Destination.Options()...), e.Destination.Host, "echo in; sleep 30")...)
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { holder.Process.Kill(); holder.Wait() }()
	if _, err := out.Read(make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
	var failed *FailedError
	if l, err := e.Watch(t.Context(), c.Argv); !errors.As(err, &failed) || !strings.Contains(failed.Said, "refused") || connected(l) {
		t.Errorf("with no session left: %v", err)
	}
	_ = end()
	if l, err := e.Watch(context.Background(), c.Argv); !errors.As(err, &failed) || connected(l) {
		t.Errorf("over a dead master: %v", err)
	}
}

func connected(l *Login) bool {
	_, yes := l.First(openssh.Connecting)
	return yes
}
