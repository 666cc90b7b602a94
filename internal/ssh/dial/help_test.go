package dial_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixedKey trusts one key for every name.
type fixedKey struct{ key ssh.PublicKey }

func (f fixedKey) Algorithms(_ context.Context, _ string, _ int, preference []string) ([]string, error) {
	if preference == nil {
		return []string{f.key.Type()}, nil
	}
	return preference, nil
}

func (f fixedKey) Check(_ context.Context, name string, _ int, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), f.key.Marshal()) {
		return &dial.Error{Class: fleet.HostKeyChanged, Text: "host key of " + name + " has changed", Hint: "look"}
	}
	return nil
}

// noKey knows no key at all.
type noKey struct{}

func (noKey) Algorithms(_ context.Context, _ string, _ int, preference []string) ([]string, error) {
	return preference, nil
}

func (noKey) Check(_ context.Context, name string, _ int, _ net.Addr, _ ssh.PublicKey) error {
	return &dial.Error{Class: fleet.HostKeyUnknown, Text: "no host key is known for " + name}
}

// resolve gives every host the same target, at the address that is its name.
type resolve dial.Target

func (r resolve) Target(_ context.Context, h host.Host) (*dial.Target, error) {
	t := dial.Target(r)
	t.HostName = h.Name
	return &t, nil
}

// hosts names n addresses beginning at 127.0.1.1.
func hosts(n int) []host.Host {
	out := make([]host.Host, n)
	for i := range out {
		out[i] = host.Host{Name: fmt.Sprintf("127.%d.%d.%d", i/62500, i/250%250+1, i%250+1)}
	}
	return out
}

// target is a Target for an in-process server.
func target(t testing.TB, s *sshtest.Server) dial.Target {
	t.Helper()
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	return dial.Target{
		User: "tester", Port: s.Port(), HostKeys: fixedKey{s.HostKey.PublicKey()},
		KeyExchanges:   []string{"curve25519-sha256"},
		ConnectTimeout: 2 * time.Minute,
		Identity:       dial.Identity{Files: []string{key}},
	}
}

// sshdTarget is a Target for a real sshd.
func sshdTarget(s *sshtest.Sshd) dial.Target {
	return dial.Target{
		User: s.User, Port: s.Port, HostKeys: fixedKey{s.HostKey},
		KeyExchanges:   []string{"curve25519-sha256"},
		ConnectTimeout: 2 * time.Minute,
		Identity:       dial.Identity{Files: []string{s.Key}},
	}
}

// run runs a command and returns what was told, results in the order of hosts.
func run(t testing.TB, p fanout.Params, tg dial.Target, hs []host.Host, cmd fleet.Command, c *sshtest.Told) []fleet.Result {
	t.Helper()
	return runWith(t, p, dial.Options{}, tg, hs, cmd, c)
}

func runWith(t testing.TB, p fanout.Params, o dial.Options, tg dial.Target, hs []host.Host, cmd fleet.Command, c *sshtest.Told) []fleet.Result {
	t.Helper()
	e := dial.New(resolve(tg), o)
	defer e.Close()
	sum, err := fanout.Run(context.Background(), p, hs, cmd, e, c)
	if err != nil {
		t.Errorf("run: %v", err)
	}
	if sum.Total() != len(hs) {
		t.Errorf("summary counts %d hosts, want %d", sum.Total(), len(hs))
	}
	return c.Results()
}
