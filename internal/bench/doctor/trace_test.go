//go:build linux

package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// slow is the log of a login that meets all that costs: each line comes a millisecond after the one
// before it.
const slow = `debug1: Executing command: 'test a'
debug3: command returned status 0
debug3: /etc/ssh/ssh_config line 7: matched 'exec "test a"'
debug1: Executing command: 'test b'
debug2: resolving "host" port 22
debug2: resolving "host.example" port 22
debug1: Connecting to host [fd00::1] port 22.
debug1: connect to address fd00::1 port 22: Connection refused
debug1: Connecting to host [192.0.2.1] port 22.
debug1: Connection established.
debug1: Remote protocol version 2.0, remote software version OpenSSH_9.9
debug1: Authenticating to host:22 as 'me'
debug1: SSH2_MSG_KEXINIT sent
debug1: SSH2_MSG_KEXINIT received
debug1: kex: algorithm: curve25519-sha256
debug1: kex: client->server cipher: aes128-ctr MAC: hmac-sha2-256 compression: zlib@openssh.com
debug1: Server host key: ssh-ed25519 SHA256:x
debug1: SSH2_MSG_NEWKEYS sent
debug1: SSH2_MSG_NEWKEYS received
debug3: send packet: type 50
debug1: Authentications that can continue: publickey,gssapi-with-mic
debug1: Next authentication method: gssapi-with-mic
debug1: SSH2_MSG_KEXINIT sent
debug1: Next authentication method: publickey
debug1: Offering public key: /one RSA SHA256:a
debug3: send packet: type 50
debug1: Offering public key: /two ED25519 SHA256:b agent
debug1: Server accepts key: /two ED25519 SHA256:b agent
debug3: sign_and_send_pubkey: using publickey
debug3: sign_and_send_pubkey: signing using ssh-ed25519
debug3: send packet: type 50
debug3: send packet: type 50
debug1: Authentication succeeded (publickey).
Authenticated to host ([192.0.2.1]:22) using "publickey".`

// What a log tells is told: how long each part took, who did not answer, which keys were offered in
// vain.
func TestRead(t *testing.T) {
	l := &login.Login{Whole: time.Second, Spans: []record.LoginPhase{{Phase: record.PhaseTCP, WallNS: 3 * time.Millisecond}}}
	for i, line := range strings.Split(slow, "\n") {
		l.Lines = append(l.Lines, login.Line{At: time.Duration(i+1) * time.Millisecond, Whole: line, Event: openssh.ReadEvent(line)})
	}
	got := read(l)
	took := map[login.Phase]int64{}
	for span, d := range got.spans {
		if d > 0 {
			took[span] = d.Milliseconds()
		}
	}
	want := map[login.Phase]int64{
		whole: 1000, "0 test a": 1, "0 fd00::1": 1, connecting: 1, record.PhaseTCP: 2, lookup: 1, ordering: 2, hostKey: 2, kerberos: 2, offering: 2, known: 1, signing: 2, entry: 2,
	}
	if diff := cmp.Diff(want, took); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Command{{Text: "test a", File: "/etc/ssh/ssh_config", Line: 7}, {Text: "test b"}}, got.commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Attempt{{Address: "fd00::1", Why: "Connection refused"}}, got.failed); diff != "" {
		t.Errorf("addresses (-want +got):\n%s", diff)
	}
	if got.address != "192.0.2.1" || got.user != "me" || got.proxied || !got.zipped || got.accepted != "/two ED25519 SHA256:b agent" || !cmp.Equal(got.vain, []string{"/one RSA SHA256:a"}) {
		t.Errorf("got %+v", got)
	}
}
