package cli_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/sshtest"
)

// connecting are the commands that connect to a host.
var connecting = []string{
	"run -w h true", "run --engine openssh -w h true", "copy -w h config :", "copy --engine openssh -w h config :",
	"fetch -w h :x .", "fetch --engine openssh -w h :x .", "latency h", "doctor h", "login h", "login --engine native h",
	"bench h", "transfer --only pipe h", "advise --check h RESULT",
}

// fallsSilent are the commands that log in more than once, of which the second login is a part of
// something larger.
var fallsSilent = []string{"doctor h", "login h", "login --engine native h", "bench h", "transfer --only pipe h", "advise --check h RESULT"}

// dead is where a command waits for somebody who does not answer.
type dead struct {
	port    int
	user    string
	key     string // a file
	hostKey ssh.PublicKey
	agent   string // "" = none
	reached <-chan struct{}
}

// TestEndsAtOnce: a signal ends each command, wherever it waits and whatever for, although none of
// its clocks ends within an hour. With -v it tells how long that took.
func TestEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	result, err := filepath.Abs("testdata/recorded/before.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for i, place := range []struct {
		name  string
		lines []string
		open  func(*testing.T) dead
	}{
		{"a host that says nothing", connecting, func(t *testing.T) dead { return silentFrom(t, s, 0) }},
		{"a host that says nothing at the second login", fallsSilent, func(t *testing.T) dead { return silentFrom(t, s, 1) }},
		{"a session that says nothing", connecting, func(t *testing.T) dead { return silentSession(t, s) }},
		{"an agent that says nothing", connecting, func(t *testing.T) dead { return silentAgent(t, s) }},
	} {
		for j, line := range place.lines {
			end := endings[(i+j)%len(endings)]
			t.Run(fmt.Sprintf("%s, %s, %v", place.name, line, end.signal), func(t *testing.T) {
				t.Parallel()
				dir := t.TempDir()
				d := place.open(t)
				d.write(t, dir)
				words := strings.Fields(strings.Replace(line, "RESULT", result, 1))
				cmd, errs := start(t, dir, append([]string{sshpaceProgram(t), words[0], "-F", "config", "--connect-timeout", "3600"}, words[1:]...)...)
				select {
				case <-d.reached:
				case <-time.After(time.Minute):
					t.Fatalf("it does not get there:\n%s", errs)
				}
				limit := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
				defer limit.Stop()
				began := time.Now()
				ends(t, cmd, errs, end.signal, end.code)
				t.Logf("ended %v behind the signal", time.Since(began).Round(time.Millisecond))
				for _, over := range []string{"timed out", "no answer within"} {
					if strings.Contains(errs.String(), over) {
						t.Errorf("its time was over:\n%s", errs)
					}
				}
			})
		}
	}
}

// write writes how to get there.
func (d dead) write(t *testing.T, dir string) {
	t.Helper()
	agent := d.agent
	if agent == "" {
		agent = "none"
	}
	config := fmt.Sprintf("Host *\n  HostName 127.0.0.1\n  Port %d\n  HostKeyAlias h\n  User %s\n  IdentityFile %s\n  IdentityAgent %s\n  ConnectTimeout 3600\n"+
		"  UserKnownHostsFile %s/known_hosts\n  GlobalKnownHostsFile none\n", d.port, d.user, d.key, agent, dir)
	for name, text := range map[string]string{"config": config, "known_hosts": "h " + sshtest.AuthorizedLine(d.hostKey)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// silentFrom is a way to s that carries so many connections and is silent on those behind them.
func silentFrom(t *testing.T, s *sshtest.Sshd, carried int32) dead {
	reached := make(chan struct{})
	var once sync.Once
	var count atomic.Int32
	address := sshtest.Answering(t, func(c net.Conn) {
		if count.Add(1) > carried {
			once.Do(func() { close(reached) })
			_, _ = io.Copy(io.Discard, c)
			return
		}
		server, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
		if err != nil {
			return
		}
		defer server.Close()
		go func() { _, _ = io.Copy(server, c); server.Close() }()
		_, _ = io.Copy(c, server)
	})
	return dead{port: address.Port, user: s.User, key: s.Key, hostKey: s.HostKey, reached: reached}
}

// silentSession is a server that lets everybody in, grants everything and says nothing.
func silentSession(t *testing.T, s *sshtest.Sshd) dead {
	key := sshtest.NewKey(t)
	h := &sshtest.Hostile{At: sshtest.AtRun, HostKey: key, Do: func(p *sshtest.Peer) { _, _ = io.Copy(io.Discard, p) }}
	return dead{port: h.Start(t), user: s.User, key: s.Key, hostKey: key.PublicKey(), reached: h.Reached()}
}

// silentAgent is s with an agent that takes requests and answers none.
func silentAgent(t *testing.T, s *sshtest.Sshd) dead {
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	reached := make(chan struct{})
	var once sync.Once
	sshtest.Answer(t, l, func(c net.Conn) {
		if n, _ := c.Read(make([]byte, 1)); n > 0 {
			once.Do(func() { close(reached) })
		}
		_, _ = io.Copy(io.Discard, c)
	})
	return dead{port: s.Port, user: s.User, key: s.Key, hostKey: s.HostKey, agent: socket, reached: reached}
}
