package openssh

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// No sentence hides behind an earlier one, every cause can be found, and says what it means to a
// trial.
func TestSentences(t *testing.T) {
	for c, known := range causes {
		for _, sentence := range known.sentences {
			cause, message := CauseOf([]string{"something else", "ssh: " + sentence + " now"})
			if cause != Cause(c) || !strings.Contains(message, sentence) {
				t.Errorf("%q: cause %d from %q, want %d", sentence, cause, message, c)
			}
		}
		if quiet := Cause(c) == Unknown || Cause(c) == SilentAgent; quiet == (len(known.sentences) > 0) || known.outcome == "" {
			t.Errorf("cause %d: %d sentences and the outcome %q", c, len(known.sentences), known.outcome)
		}
	}
	if cause, message := CauseOf([]string{"Welcome", ""}); cause != Unknown || message != "" {
		t.Errorf("nothing wrong: %d from %q", cause, message)
	}
}

// What says more counts, wherever it stands.
func TestCauseOfManyMessages(t *testing.T) {
	cause, message := CauseOf([]string{
		"Host key verification failed.", "The ED25519 host key for box is marked as revoked.", "Connection closed by 10.0.0.1 port 22",
	})
	if cause != HostKeyRevoked || !strings.HasPrefix(message, "The ED25519") {
		t.Errorf("%d from %q", cause, message)
	}
}

// TestPlace: where a connection leads, of either family.
func TestPlace(t *testing.T) {
	for line, want := range map[string][2]string{
		"debug1: Connecting to box [10.0.0.1] port 22.":         {"10.0.0.1", "22"},
		"debug1: Connecting to box [fe80::1%eth0] port 2222.\r": {"fe80::1%eth0", "2222"},
		"debug1: Connecting to box port 22.":                    {},
		"debug1: Offering public key: [x] port 22.":             {},
	} {
		if address, port := ReadEvent(line).Place(); address != want[0] || port != want[1] {
			t.Errorf("%q: %q, %q", line, address, port)
		}
	}
}

func TestRead(t *testing.T) {
	for line, want := range map[string]Event{
		"debug1: Connecting to box [10.0.0.1] port 22.\r\n":                                    {Connecting, "box [10.0.0.1] port 22."},
		"debug1: kex_exchange_identification: banner line 0: Exceeded MaxStartups":             {PreBanner, "Exceeded MaxStartups"},
		"debug1: Remote protocol version 2.0, remote software version OpenSSH_9.2p1 Debian-2 ": {ServerVersion, "OpenSSH_9.2p1 Debian-2"},
		"debug1: mux_client_request_session: master session id: 2":                             {MasterOpened, ": 2"},
		"debug1: mux_client_hello_exchange: master version 4":                                  {Multiplexed, "hello_exchange: master version 4"},
		"debug1: client_input_channel_req: channel 0 rtype exit-status reply 0":                {ExitStatus, "0 rtype exit-status reply 0"},
		"debug2: channel 1: rcvd ext data 45\r\n":                                              {ErrorOutput, "45"},
		"debug1: client_input_channel_req: channel 0 rtype exit-signal reply 0":                {ExitSignal, "0 rtype exit-signal reply 0"},
		"Offending ED25519 key in /home/me/known:hosts:7":                                      {WrongKey, "/home/me/known:hosts"},
		"Offending nonsense":           {Message, "Offending nonsense"},
		"debug1: whatever":             {},
		"debug3: whatever":             {Trace, "whatever"},
		"** WARNING: not post-quantum": {},
		"  ":                           {},
		" Connection refused \n":       {Message, "Connection refused"},
	} {
		if got := ReadEvent(line); got != want {
			t.Errorf("%q: %+v, want %+v", line, got, want)
		}
	}
}

// A login that ssh itself logged goes through its stations in their order.
func TestReadOfARealLog(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "openssh", "testdata", "verbose", "ctr.log"))
	if err != nil {
		t.Fatal(err)
	}
	var got []Kind
	for line := range strings.Lines(string(text)) {
		e := ReadEvent(line)
		if e.Kind == Message {
			t.Errorf("nothing went wrong, but: %q", line)
		}
		got = append(got, e.Kind)
	}
	last := -1
	for _, want := range []Kind{Connecting, Connected, ServerVersion, KexAlgorithm, HostKeyType, ServerToClient, ClientToServer, HostKeySeen, NewKeys, AuthStarted, LoggedIn, CommandSent, ExitStatus} {
		at := slices.Index(got[last+1:], want)
		if at < 0 {
			t.Fatalf("kind %d is not behind line %d", want, last+1)
		}
		last += at + 1
	}
}

func FuzzRead(f *testing.F) {
	f.Add("Offending  key in ")
	f.Add("debug1: kex_exchange_identification: banner line ")
	f.Fuzz(func(t *testing.T, line string) {
		if e := ReadEvent(line); !strings.Contains(line, e.Text) && e.Kind != Message {
			t.Errorf("%q is not in %q", e.Text, line)
		}
	})
}

func TestLastWords(t *testing.T) {
	const changed = "Host key for x has changed and you have requested strict checking."
	const unknown = "No ED25519 host key is known for x and you have requested strict checking."
	const tooMany = "Received disconnect from 192.0.2.1 port 22:2: Too many authentication failures"
	for want, lines := range map[string][]string{
		changed:                          {"@@@@", changed, "Host key verification failed.\r", ""},
		unknown:                          {unknown + "\r", "Host key verification failed."},
		"Host key verification failed.":  {"Host key verification failed."},
		tooMany:                          {tooMany, "Disconnected from 192.0.2.1 port 22"},
		"ssh: two":                       {"ssh: one", "ssh: two", " "},
		"mux_client_request_session: no": {"mux_client_request_session: no", "ControlSocket x already exists, disabling multiplexing", "Permission denied (publickey)."},
		"":                               {"", "\r"},
	} {
		if got := LastWords(lines); got != want {
			t.Errorf("%q: %q, not %q", lines, got, want)
		}
	}
}

// What a jump host greets with is no reason.
func TestProxyReason(t *testing.T) {
	greeted := []string{"ssh: connect to host x port 22: Connection refused", "BANNER"}
	for command, want := range map[string]string{
		"ssh -W x:22 gate": greeted[0], "exec '/usr/bin/ssh' -W x:22 gate": greeted[0], "nc x 22": "BANNER", "sshuttle x": "BANNER",
	} {
		if got := ProxyReason(command, greeted); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		if got := ProxyReason(command, nil); got != "" {
			t.Errorf("%s: %q of nothing", command, got)
		}
	}
	if got := ProxyReason("ssh -W x:22 gate", greeted[1:]); got != "" {
		t.Errorf("a greeting is a reason: %q", got)
	}
}

// An event of our own comes back as it was.
func TestOwnEvents(t *testing.T) {
	for kind, name := range names {
		if name == "" {
			continue
		}
		for _, text := range []string{"", "cipher: a MAC: b compression: none"} {
			var line strings.Builder
			want := Event{Kind(kind), text}
			if WriteEvent(&line, want); ReadEvent(line.String()) != want {
				t.Errorf("%q is %+v, want %+v", line.String(), ReadEvent(line.String()), want)
			}
		}
	}
	if got := ReadEvent(own + "nonsense"); got != (Event{}) {
		t.Errorf("%+v", got)
	}
}

// What a program that copies says of its end is told, not that it ended.
func TestReason(t *testing.T) {
	for said, want := range map[string]string{
		"bind [127.0.0.1]:9: Address already in use\nchannel_setup: cannot listen to port: 9\nCould not request local forwarding.\n":                         "bind [127.0.0.1]:9: Address already in use",
		"subsystem request failed on channel 0\n/usr/bin/scp: Connection closed\n":                                                                           "subsystem request failed on channel 0",
		"sh: 1: /nowhere/sftp-server: not found\nscp: Connection closed\n":                                                                                   "sh: 1: /nowhere/sftp-server: not found",
		"/usr/bin/scp: Connection closed\n":                                                                                                                  "/usr/bin/scp: Connection closed",
		"scp: write remote \"/x\": Failure\n":                                                                                                                "scp: write remote \"/x\": Failure",
		"debug1: Connecting to x\nu@x: Permission denied (publickey).\r\nrsync: connection unexpectedly closed\nrsync error: unexplained error (code 255)\n": "u@x: Permission denied (publickey).",
		"debug1: Connecting to x\nConnection closed.\n":                                                                                                      "",
	} {
		if got := Reason(said); got != want {
			t.Errorf("%q says %q, want %q", said, got, want)
		}
	}
}
