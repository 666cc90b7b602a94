package reach

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// notReached is a run on the host web, which is not reached.
func notReached(t *testing.T, engine Engine, config string, limit time.Duration) fleet.Result {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config")
	put(t, file, config, 0o600)
	executor, err := New(t.Context(), Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: file}, ConnectTimeout: limit}, Engine: engine})
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1}, []host.Host{{Name: "web"}}, fleet.Command{Line: "true"}, executor, sink); err != nil {
		t.Fatal(err)
	}
	r := sink.Results()[0]
	if r.Ran != fleet.RanNo {
		t.Errorf("ran %v", r.Ran)
	}
	return r
}

// everywhere is the configuration of all hosts, at a port where one does not say another.
func everywhere(t *testing.T, user, key string, port int, hostKey ssh.PublicKey) string {
	known := filepath.Join(t.TempDir(), "known")
	put(t, known, fmt.Sprintf("[127.0.0.1]:%d %s", port, sshtest.AuthorizedLine(hostKey)), 0o600)
	return fmt.Sprintf("Host *\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n",
		port, user, key, known)
}

// TestHops: why a host behind jump hosts was not reached, and by whose doing, is the same with
// every engine.
func TestHops(t *testing.T) {
	t.Parallel() // it waits most of the time
	s := sshtest.StartSshd(t)
	all := everywhere(t, s.User, s.Key, s.Port, s.HostKey)
	says := func(answer func(net.Conn)) int { return sshtest.Answering(t, answer).Port }
	closed, err := sshtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	for _, peer := range []struct {
		name  string
		port  int
		class fleet.Class
	}{
		{"resets", says(func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }), fleet.Throttled},
		{"is busy", says(func(c net.Conn) { io.WriteString(c, "Exceeded MaxStartups\r\n") }), fleet.Throttled},
		{"speaks HTTP", says(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }), fleet.NotSSH},
		{"is silent", says(func(c net.Conn) { io.Copy(io.Discard, c) }), fleet.TimedOut},
		{"is another", (&sshtest.Server{}).Start(t).Port(), fleet.HostKeyUnknown},
		{"refuses", closed, fleet.Refused},
	} {
		limit := time.Minute
		if peer.class == fleet.TimedOut {
			limit = time.Second
		}
		for place, lines := range map[string]string{
			"host":             "Host web\nPort %d\nProxyJump gate\n",
			"jump host":        "Host gate\nPort %d\nHost web\nProxyJump gate\n",
			"second jump host": "Host inner\nPort %d\nHost web\nProxyJump gate,inner\n",
			"first of two":     "Host gate\nPort %d\nHost web\nProxyJump gate,inner\n",
		} {
			for _, engine := range []Engine{Native, OpenSSH} {
				t.Run(fmt.Sprintf("%s %s/%s", place, peer.name, engine), func(t *testing.T) {
					t.Parallel()
					r := notReached(t, engine, fmt.Sprintf(lines, peer.port)+all, limit)
					if r.Class != peer.class || place != "host" && !strings.HasPrefix(r.Err, "jump host ") {
						t.Errorf("%v: %s (%s)", r.Class, r.Err, r.Hint)
					}
				})
			}
		}
	}
}

// TestNotForwarded: what a jump host says of a host that it does not reach means the same to every
// engine, and never more than a network can do.
func TestNotForwarded(t *testing.T) {
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for said, class := range map[string]fleet.Class{
		"Connection refused": fleet.Refused, "Connection reset by peer": fleet.Throttled, "Connection timed out": fleet.TimedOut,
		"No route to host": fleet.Unroutable, "REMOTE HOST IDENTIFICATION HAS CHANGED": fleet.Refused, "Permission denied (publickey)": fleet.Refused,
	} {
		gate := (&sshtest.Server{ForwardError: said}).Start(t)
		for _, engine := range []Engine{Native, OpenSSH} {
			r := notReached(t, engine, "Host web\nPort 1\nProxyJump gate\n"+everywhere(t, "tester", key, gate.Port(), gate.HostKey.PublicKey()), time.Minute)
			if r.Class != class {
				t.Errorf("%q, %s: %v: %s (%s)", said, engine, r.Class, r.Err, r.Hint)
			}
		}
	}
}
