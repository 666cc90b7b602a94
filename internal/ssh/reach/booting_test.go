package reach

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// TestBooting: a host that boots, or shuts down, ends each login and says why. Who waits for such
// hosts runs the command once the host takes logins, and only once; who does not is told the
// reason.
func TestBooting(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("this test configures PAM, as root, for a server of its own")
	}
	dir := sshtest.OpenDir(t, 0o777)
	nologin, ran := filepath.Join(dir, "nologin"), filepath.Join(dir, "ran")
	const reason = "System is booting up. Come back later."
	server := sshtest.StartSshdThatBoots(t, nologin)
	settings := []string{"UserKnownHostsFile=" + sshtest.KnownHostsFile(t, "* "+sshtest.AuthorizedLine(server.HostKey)),
		"GlobalKnownHostsFile=none", "IdentityAgent=none", "IdentityFile=" + server.Key}
	one := []host.Host{{Name: "127.0.0.1"}}
	for engine, want := range map[Engine]fleet.Ran{Native: fleet.RanUnknown, OpenSSH: fleet.RanNo} {
		if err := os.WriteFile(nologin, []byte(reason+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		r := try(t, server, engine, settings)
		if r.Ran != want || !r.Closed || !strings.HasPrefix(r.Err, "Connection closed by 127.0.0.1 port") || !strings.HasSuffix(r.Err, "; the server said: "+reason) {
			t.Errorf("%s: %+v", engine, r)
		}
		time.AfterFunc(time.Second, func() { os.Remove(nologin) })
		waits := fanout.Params{RetryFor: time.Minute, RetryDown: true}
		r = tryWith(t, server, engine, settings, one, "echo x >>"+ran, waits)[0]
		if text, _ := os.ReadFile(ran); r.Status() != fleet.OK || r.Attempts < 2 || string(text) != "x\n" {
			t.Errorf("%s, waiting: %+v; ran %q", engine, r, text)
		}
		if err := os.Remove(ran); err != nil {
			t.Fatal(err)
		}
	}
}
