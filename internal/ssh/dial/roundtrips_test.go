package dial_test

import (
	"context"
	"math"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// anyKey trusts every key: for servers whose key a test does not know.
type anyKey struct{}

func (anyKey) Algorithms(context.Context, string, int, []string) ([]string, error) {
	return []string{ssh.KeyAlgoED25519}, nil
}

func (anyKey) Check(context.Context, string, int, net.Addr, ssh.PublicKey) error { return nil }

// server is one that a login is measured on.
type server struct {
	name, user, key string
	port, want      int
}

func roundTripServers(t *testing.T) []server {
	sshd := sshtest.StartSshd(t)
	bear, tiny := sshtest.StartDropbear(t), sshtest.StartTinySSH(t)
	goServer := (&sshtest.Server{}).Start(t)
	goKey, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	return []server{
		{"OpenSSH", sshd.User, sshd.Key, sshd.Port, 4},
		{"Dropbear", bear.User, bear.Key, bear.Port, 5},
		{"TinySSH", tiny.User, tiny.Key, tiny.Port, 6},
		{"x/crypto", "tester", goKey, goServer.Port(), 6},
	}
}

// Lengths of a path; the difference is what round trips are counted by, so that the time that both
// ends compute does not count.
const (
	shortTrip = 60 * time.Millisecond
	longTrip  = 300 * time.Millisecond
)

// countTrips counts round trips, TCP's included, by what a longer path adds to a login. A busy
// machine adds its own time now and then, so the shortest times of some tries count.
func countTrips(t *testing.T, port, want int, login func(port int)) {
	t.Helper()
	timed := func(trip time.Duration) time.Duration {
		r := through(t, port, relay.Options{Path: relay.Path{Delay: trip / 2}, Prompt: true})
		began := time.Now()
		login(r.Port())
		return time.Since(began)
	}
	var count float64
	long, short := time.Hour, time.Hour
	for range 16 {
		long, short = min(long, timed(longTrip)), min(short, timed(shortTrip))
		count = float64(long-short) / float64(longTrip-shortTrip)
		if math.Abs(count-float64(want)) <= 0.5 {
			t.Logf("%.2f round trips", count)
			return
		}
	}
	t.Errorf("%.2f round trips, want %d", count, want)
}

// TestRoundTrips: a cold command takes TCP, version lines, keys, and login with command.
func TestRoundTrips(t *testing.T) {
	for _, s := range roundTripServers(t) {
		t.Run(s.name, func(t *testing.T) {
			countTrips(t, s.port, s.want, func(port int) {
				tg := dial.Target{User: s.user, Port: port, HostKeys: anyKey{}, ConnectTimeout: time.Minute, Identity: dial.Identity{Files: []string{s.key}}}
				if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Status() != fleet.OK {
					t.Fatalf("%+v", r)
				}
			})
		})
	}
}

// TestRoundTripsOfSSH shows that the count is right: ssh's is known.
func TestRoundTripsOfSSH(t *testing.T) {
	s := sshtest.StartSshd(t)
	countTrips(t, s.Port, 9, func(port int) {
		cmd := exec.Command("ssh", "-F", "none", "-i", s.Key, "-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new",
			"-o", "UserKnownHostsFile="+filepath.Join(s.Dir, "known"), "-o", "HostKeyAlias=x", "-o", "KexAlgorithms=curve25519-sha256",
			"-p", strconv.Itoa(port), s.User+"@127.0.0.1", "true")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	})
}
