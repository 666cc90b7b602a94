package openssh_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// recorded reads a log of a real ssh 9.2p1 from testdata: name.log is what went to -E, name.err
// what came on standard error. Directories and fingerprints in them are made up.
func recorded(t testing.TB, name string) (log, stderr string) {
	t.Helper()
	read := func(ending string) string {
		text, err := os.ReadFile(filepath.Join("testdata", "verbose", name+ending))
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		return string(text)
	}
	return read(".log"), read(".err")
}

const debian = "OpenSSH_9.2p1 Debian-2+deb12u10"

func TestParseVerboseOfRealLogs(t *testing.T) {
	sntrup := alg.Suite{Kex: "sntrup761x25519-sha512", HostKey: "ssh-ed25519"}
	with := func(cipher, mac string) alg.Suite {
		s := sntrup
		s.Cipher, s.MAC = cipher, mac
		return s
	}
	chacha := with("chacha20-poly1305@openssh.com", "")
	for name, want := range map[string]openssh.Negotiation{
		"aead": {Got: with("aes128-gcm@openssh.com", ""), Banner: debian, LoggedIn: true},
		"ctr": {
			Got:    alg.Suite{Cipher: "aes256-ctr", MAC: "umac-64-etm@openssh.com", Kex: "ecdh-sha2-nistp256", HostKey: "ssh-ed25519"},
			Banner: debian, LoggedIn: true,
		},
		"rekey":      {Got: with("aes128-ctr", "hmac-sha2-256"), Banner: debian, LoggedIn: true, Rekeys: 3},
		"jump":       {Got: chacha, Banner: debian, LoggedIn: true},
		"denied":     {Got: chacha, Banner: debian},
		"changed":    {Got: chacha, Banner: debian, KeyFile: "/home/me/.ssh/khbad"},
		"unknown":    {Got: chacha, Banner: debian},
		"nomatch":    {Got: alg.Suite{Kex: sntrup.Kex, HostKey: sntrup.HostKey}, Banner: debian},
		"chatty":     {Got: chacha, Banner: debian, LoggedIn: true},
		"killed":     {Got: chacha, Banner: debian, LoggedIn: true},
		"refused":    {},
		"unresolved": {},
		"hangup":     {},
		"penalty":    {},
		"silent":     {},
		"jumpdenied": {},
		"jumpclosed": {},
	} {
		log, _ := recorded(t, name)
		got := openssh.ParseVerbose(log)
		got.Complaints, got.Keyed, got.Serving = nil, false, false // see TestStage
		want.Reverse = want.Got.Bulk()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestParseVerboseReadsTheServersOffer(t *testing.T) {
	log, _ := recorded(t, "offer")
	got := openssh.ParseVerbose(log).Server
	want := alg.Offer{
		Ciphers: strings.Split("chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com", ","),
		MACs: strings.Split("umac-64-etm@openssh.com,umac-128-etm@openssh.com,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,"+
			"hmac-sha1-etm@openssh.com,umac-64@openssh.com,umac-128@openssh.com,hmac-sha2-256,hmac-sha2-512,hmac-sha1", ","),
		HostKeys: []string{"ssh-ed25519"},
	}
	if !slices.Contains(got.Kex, "curve25519-sha256") || !slices.Contains(got.Kex, "kex-strict-s-v00@openssh.com") {
		t.Errorf("key exchanges are %q", got.Kex)
	}
	got.Kex = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("offer (-want +got):\n%s", diff)
	}
}

// Made-up logs in the words of other releases.
func TestParseVerboseOfOtherReleases(t *testing.T) {
	for name, tt := range map[string]struct {
		log  string
		want openssh.Negotiation
	}{
		"6.6: no names before the lists, no key exchange": {
			`OpenSSH_6.6.1, OpenSSL 1.0.1f 6 Jan 2014
debug1: Remote protocol version 2.0, remote software version OpenSSH_6.6.1p1 Ubuntu-2ubuntu2
debug1: match: OpenSSH_6.6.1p1 Ubuntu-2ubuntu2 pat OpenSSH_6.6.1* compat 0x04000000
debug1: SSH2_MSG_KEXINIT sent
debug1: kex: server->client aes128-ctr hmac-md5 none
debug1: kex: client->server aes128-ctr hmac-md5 none
debug1: sending SSH2_MSG_KEX_ECDH_INIT
debug1: SSH2_MSG_NEWKEYS received
debug1: Authentication succeeded (publickey).
Authenticated to old ([10.0.0.6]:22).
`, openssh.Negotiation{
				Got: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-md5"}, Reverse: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-md5"},
				Banner: "OpenSSH_6.6.1p1 Ubuntu-2ubuntu2", Keyed: true, LoggedIn: true,
			},
		},
		"6.7: AEAD": {
			"debug1: kex: server->client chacha20-poly1305@openssh.com <implicit> none\ndebug1: kex: client->server chacha20-poly1305@openssh.com <implicit> none\n",
			openssh.Negotiation{Got: alg.Suite{Cipher: "chacha20-poly1305@openssh.com"}, Reverse: alg.Suite{Cipher: "chacha20-poly1305@openssh.com"}},
		},
		"7.4: two directions": {
			`debug1: kex: algorithm: curve25519-sha256
debug1: kex: host key algorithm: ecdsa-sha2-nistp256
debug1: kex: server->client cipher: aes128-ctr MAC: umac-64-etm@openssh.com compression: none
debug1: kex: client->server cipher: aes256-gcm@openssh.com MAC: <implicit> compression: none
`, openssh.Negotiation{
				Got:     alg.Suite{Cipher: "aes256-gcm@openssh.com", Kex: "curve25519-sha256", HostKey: "ecdsa-sha2-nistp256"},
				Reverse: alg.Suite{Cipher: "aes128-ctr", MAC: "umac-64-etm@openssh.com"},
			},
		},
		"10.5: post-quantum, CRLF": {
			"debug1: Remote protocol version 2.0, remote software version OpenSSH_10.5\r\ndebug1: kex: algorithm: mlkem768x25519-sha256\r\n" +
				"debug1: kex: client->server cipher: aes128-ctr MAC: hmac-sha2-256 compression: zlib@openssh.com\r\n" +
				"Authenticated to new ([::1]:22) using \"publickey\".\r\n",
			openssh.Negotiation{Got: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "mlkem768x25519-sha256"}, Banner: "OpenSSH_10.5", LoggedIn: true},
		},
		"a server without a software version": {
			"debug1: Remote protocol version 1.99, remote software version \n", openssh.Negotiation{},
		},
		"through a master": {
			"debug1: auto-mux: Trying existing master at '/home/me/.ssh/m'\ndebug1: mux_client_request_session: master session id: 2\n",
			openssh.Negotiation{Multiplex: true},
		},
		"cut in the middle": {
			"debug1: kex: algorithm: curve25519-sha256\ndebug1: kex: client->server cipher: aes1", openssh.Negotiation{Got: alg.Suite{Kex: "curve25519-sha256"}},
		},
	} {
		got := openssh.ParseVerbose(tt.log)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Up to 7.0 the lists of -vv have no names: the client's ten, two numbers, then the server's.
func TestParseVerboseReadsTheOfferOfOldReleases(t *testing.T) {
	var log strings.Builder
	for _, side := range []string{"mine", "theirs"} {
		for _, list := range []string{"kex", "hostkey", "ctos", "stoc", "mctos", "mstoc", "none", "none", "", ""} {
			log.WriteString("debug2: kex_parse_kexinit: " + side + list + "," + side + "2\n")
		}
		log.WriteString("debug2: kex_parse_kexinit: first_kex_follows 0 \ndebug2: kex_parse_kexinit: reserved 0 \n")
	}
	want := alg.Offer{
		Kex: []string{"theirskex", "theirs2"}, HostKeys: []string{"theirshostkey", "theirs2"},
		Ciphers: []string{"theirsctos", "theirs2"}, MACs: []string{"theirsmctos", "theirs2"},
	}
	if diff := cmp.Diff(want, openssh.ParseVerbose(log.String()).Server); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailureOfRealLogs(t *testing.T) {
	for name, want := range map[string]struct {
		outcome record.Outcome
		says    string
	}{
		"denied":     {record.Denied, "Permission denied (publickey)"},
		"changed":    {record.HostKey, "Host key for box has changed"},
		"unknown":    {record.HostKey, "No ED25519 host key is known for box"},
		"refused":    {record.Refused, "port 1: Connection refused"},
		"nomatch":    {record.Mismatched, "no matching cipher found"},
		"unresolved": {record.Unresolved, "Could not resolve hostname nosuchhost.invalid"},
		"hangup":     {record.Refused, "kex_exchange_identification"},
		"penalty":    {record.Refused, "kex_exchange_identification"},
		"silent":     {record.TimedOut, "timed out during banner exchange"},
		"jumpdenied": {record.Denied, "Permission denied (publickey)"},
		"jumpclosed": {record.Refused, "open failed: connect failed: Connection refused"},
		"killed":     {record.Broken, "closed by remote host"},
		"chatty":     {record.Broken, "Permission denied, said the host"},
		"badoption":  {record.Broken, "Bad configuration option: foo"},
	} {
		log, stderr := recorded(t, name)
		got := openssh.Failure(openssh.ParseVerbose(log), stderr)
		if got.Outcome != want.outcome || !strings.Contains(got.Said, want.says) {
			t.Errorf("%s: %+v; want %s, %q", name, got, want.outcome, want.says)
		}
	}
}

func TestFailure(t *testing.T) {
	const banner = "debug1: Remote protocol version 2.0, remote software version X\n"
	const serving = "debug1: SSH2_MSG_SERVICE_ACCEPT received\n"
	const login = banner + "Authenticated to x ([::1]:22).\n"
	for name, tt := range map[string]struct {
		log, stderr string
		outcome     record.Outcome
		says        string
	}{
		"nothing":                      {"", "", record.Broken, "ssh ended without a word"},
		"no shell":                     {login, "", record.Broken, "a usable login shell"},
		"only debug":                   {banner, "debug1: whatever\n", record.Broken, "ssh ended without a word"},
		"reset before the banner":      {"Connection reset by 10.0.0.1 port 22\n", "", record.Refused, "reset"},
		"reset after the banner":       {banner + "Connection reset by 10.0.0.1 port 22\n", "", record.Broken, "reset"},
		"closed after the login":       {login + "Connection closed by 10.0.0.1 port 22\n", "", record.Broken, "closed"},
		"old hang-up":                  {"ssh_exchange_identification: Connection closed by remote host\n", "", record.Refused, "ssh_exchange"},
		"timeout":                      {"ssh: connect to host x port 22: Connection timed out\n", "", record.TimedOut, "timed out"},
		"timeout on BSD":               {"ssh: connect to host x port 22: Operation timed out\n", "", record.TimedOut, "timed out"},
		"keep-alive":                   {login + "Timeout, server x not responding.\n", "", record.TimedOut, "not responding"},
		"no route":                     {"ssh: connect to host x port 22: No route to host\n", "", record.Refused, "No route"},
		"corrupted":                    {login + "Corrupted MAC on input.\nssh_dispatch_run_fatal: Connection to x: message authentication code incorrect\n", "", record.Broken, "Corrupted MAC"},
		"too many keys":                {banner + "Received disconnect from x port 22:2: Too many authentication failures\n", "", record.Denied, "Too many"},
		"file permissions are no deny": {banner + "Bad owner or permissions on /home/me/.ssh/config\n", "", record.Broken, "Bad owner"},
		"last word":                    {banner + "one\ntwo\n", "", record.Broken, "two"},
		"the remote's words":           {login + "Connection closed by x\n", "Permission denied (publickey)\n", record.Broken, "Connection closed"},
		"the remote's words only":      {login, "me: Permission denied (publickey)\n", record.Broken, "which may be the server's banner, is \"me: Permission denied (publickey)\""},
		"the server's greeting":        {banner + serving + "Connection reset by x port 22\n", "Permission denied (publickey). Host key verification failed.\n", record.Broken, "Connection reset by x"},
		"the server's greeting only":   {banner + serving, "Connection refused\n", record.Broken, "ssh ended without a word"},
		"the jump host's greeting":     {"", serving + "REMOTE HOST IDENTIFICATION HAS CHANGED\nwelcome\nme@gate: Permission denied (publickey).\n", record.Denied, "me@gate"},
		"a jump host that let us in":   {"kex_exchange_identification: Connection closed by remote host\n", serving + "Connection refused\nAuthenticated to gate ([::1]:22).\n", record.Refused, "kex_exchange"},
		"jump host prohibits":          {"", "channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\n", record.Refused, "administratively"},
		"the built-in client, denied":  {banner + "ssh: handshake failed: ssh: unable to authenticate, attempted methods [none publickey]\n", "", record.Denied, "unable"},
		"the built-in client, key":     {"ssh: handshake failed: ssh: host key mismatch\n", "", record.HostKey, "mismatch"},
		"the built-in client, cipher":  {"ssh: handshake failed: ssh: no common algorithm for client to server cipher\n", "", record.Mismatched, "no common"},
	} {
		got := openssh.Failure(openssh.ParseVerbose(tt.log), tt.stderr)
		if got.Outcome != tt.outcome || !strings.Contains(got.Said, tt.says) {
			t.Errorf("%s: %+v; want %s, %q", name, got, tt.outcome, tt.says)
		}
		if theirs := strings.Contains(got.Said, "the server's banner"); theirs && got.Cause != openssh.Unknown {
			t.Errorf("%s: a host's words are a reason: %+v", name, got)
		}
	}
}

// Whatever a log holds, reading it ends, and finds nothing that is not there.
func FuzzParseVerbose(f *testing.F) {
	for _, name := range []string{"aead", "offer", "rekey", "jump", "changed"} {
		log, _ := recorded(f, name)
		f.Add(log, log)
	}
	f.Add("debug2: kex_parse_kexinit: a\ndebug1: kex: client->server\n", "debug1: kex: client->server cipher: x MAC:")
	f.Fuzz(func(t *testing.T, log, stderr string) {
		n := openssh.ParseVerbose(log)
		for _, name := range []string{n.Got.Cipher, n.Got.MAC, n.Got.Kex, n.Got.HostKey, n.Reverse.Cipher, n.Reverse.MAC, n.Banner} {
			if !strings.Contains(log, name) || strings.ContainsAny(name, "\n") {
				t.Errorf("%q is not in the log", name)
			}
		}
		if n.Rekeys < 0 || n.Got.MAC == "<implicit>" {
			t.Errorf("%+v", n)
		}
		if f := openssh.Failure(n, stderr); f.Outcome == record.OK || f.Said == "" || strings.Contains(f.Said, "\n") {
			t.Errorf("Failure: %+v", f)
		}
	})
}

// TestLate: where a login stands when the server falls silent.
func TestLate(t *testing.T) {
	log := ""
	for _, step := range []struct {
		line, want string
		cause      openssh.Cause
	}{
		{"debug1: Connection established.", "the exchange of version lines", openssh.Unknown},
		{"debug1: Remote protocol version 2.0, remote software version x", "the exchange of lists of algorithms", openssh.Unknown},
		{"debug1: kex: algorithm: curve25519-sha256", "the key exchange", openssh.Unknown},
		{"debug1: SSH2_MSG_NEWKEYS received", "the request for the login service; an agent may be silent, too", openssh.SilentAgent},
		{"debug1: SSH2_MSG_SERVICE_ACCEPT received", "the login; an agent may be silent, too", openssh.SilentAgent},
		{"debug1: Authentication succeeded (publickey).", "the start of the command", openssh.Unknown},
	} {
		log += step.line + "\n"
		n := openssh.ParseVerbose(log)
		want := openssh.Failed{Outcome: record.TimedOut, Said: "no answer in 2s during " + step.want, Cause: step.cause}
		if got := n.Late(2 * time.Second); got != want {
			t.Errorf("after %q: %+v, want %+v", step.line, got, want)
		}
	}
	n := openssh.Negotiation{Foreign: "HTTP/1.1 400"}
	if got := n.Late(time.Second); got.Cause != openssh.NotSSH || got.Outcome != record.TimedOut {
		t.Errorf("%+v", got)
	}
}
