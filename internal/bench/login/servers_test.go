package login

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/record"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// program is this module's own, built for tests of our client.
func program(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sshpace")
	if out, err := exec.Command("go", "build", "-o", path, "sshpace").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

// TestPhasesOfServers: on a path of 100 ms, and with servers of four makers, the phases of ssh's
// logins and of our own are, within 3 %, the time that a clock outside shows; and what waits for an
// answer has the round trip of that.
func TestPhasesOfServers(t *testing.T) {
	const trip = 100 * time.Millisecond
	ours := program(t)
	sshd, bear, tiny := sshtest.StartSshd(t), sshtest.StartDropbear(t), sshtest.StartTinySSH(t)
	goServer := (&sshtest.Server{}).Start(t)
	goKey, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for _, s := range []struct {
		name, user, key string
		port            int
	}{
		{"OpenSSH", sshd.User, sshd.Key, sshd.Port}, {"Dropbear", bear.User, bear.Key, bear.Port},
		{"TinySSH", tiny.User, tiny.Key, tiny.Port}, {"Go", "tester", goKey, goServer.Port()},
	} {
		r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", s.port), relay.Options{Path: relay.Path{Delay: trip / 2}, Prompt: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		ssh := sshTo(t, s.user, s.key, r.Port())
		known := ssh("")
		for engine, argv := range map[string]ArgvFunc{
			"ssh": ssh,
			"native": func(log string) []string {
				return []string{ours, "run", "--engine", "native", "--no-record", "--quiet", "-F", "none", "-i", s.key, "-o", "IdentityAgent=none", "-o", "HostKeyAlias=x",
					"-o", "StrictHostKeyChecking=accept-new", "-o", knownIn(known), "-l", s.user, "-p", fmt.Sprint(r.Port()), "--login-log", log, "-w", "127.0.0.1", "--", "true"}
			},
		} {
			t.Run(s.name+"/"+engine, func(t *testing.T) { checkPhases(t, argv, trip) })
		}
	}
}

// knownIn is the option of a command line that names the known hosts.
func knownIn(argv []string) string {
	return argv[slices.IndexFunc(argv, func(word string) bool { return strings.HasPrefix(word, "UserKnownHostsFile=") })]
}

// Span is how long a phase took; 0 where it was not told.
func (l *Login) Span(p Phase) time.Duration {
	for _, s := range l.Spans {
		if s.Phase == p {
			return s.WallNS
		}
	}
	return 0
}

// checkPhases carries out a login. On a busy machine a clock outside may show more than the login,
// and what came late may all come at once, hence some tries.
func checkPhases(t *testing.T, argv ArgvFunc, trip time.Duration) {
	waittest.Until(t, "phases that make the login", func() bool {
		began := time.Now()
		l, err := Watch(context.Background(), t.TempDir(), argv, nil)
		outside := time.Since(began)
		if err != nil {
			t.Fatal(err)
		}
		var sum time.Duration
		for _, span := range l.Spans {
			sum += span.WallNS
		}
		// Our client sends the signature with the request for the service. A busy machine sees the
		// end of the phase before late, hence half a round trip.
		waits := l.Span(record.PhaseKex) >= trip/2 && l.Span(record.PhaseService)+l.Span(record.PhaseSign) >= trip/2
		off := float64(sum)/float64(outside) - 1
		if sum > outside {
			t.Errorf("%v of phases in %v", sum, outside)
		}
		if waits && off >= -0.03 {
			return true
		}
		t.Logf("off by %.1f %%, a round trip takes %v: %v", 100*off, trip, l.Spans)
		return false
	})
}
