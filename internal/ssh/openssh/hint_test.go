package openssh_test

import (
	"strings"
	"testing"

	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// TestHint: the next step fits the cause, and leads to the host as the user does.
func TestHint(t *testing.T) {
	d := openssh.Destination{Host: "nas", Flags: conf.Flags{Port: 2222}}
	for said, tt := range map[string]struct {
		outcome record.Outcome
		cause   openssh.Cause
		want    string
	}{
		"ssh: connect to host nas port 2222: Connection refused":                                                                                {record.Refused, openssh.ConnectionRefused, "on that port: ssh -v -p 2222 nas"},
		"ssh: connect to host nas port 2222: No route to host":                                                                                  {record.Refused, openssh.Unroutable, "there is no route: ssh -v -p 2222 nas"},
		"kex_exchange_identification: Connection closed by remote host":                                                                         {record.Refused, openssh.NoVersion, "MaxStartups"},
		"Received disconnect from 192.0.2.1: 2: Too many authentication failures":                                                               {record.Denied, openssh.TooManyKeys, "ssh -o IdentitiesOnly=yes -i FILE -p 2222 nas true"},
		"me@nas: Permission denied (publickey).":                                                                                                {record.Denied, openssh.Denied, "ssh -o BatchMode=yes -p 2222 nas true work first"},
		"No ED25519 host key is known for nas and you have requested strict check.":                                                             {record.HostKey, openssh.HostKeyUnknown, "log in once with ssh -p 2222 nas"},
		"Host key ED25519 SHA256:x revoked by file /r":                                                                                          {record.HostKey, openssh.HostKeyRevoked, "do not log in"},
		"Bad server host key: Invalid key length":                                                                                               {record.HostKey, openssh.HostKeyWeak, "Ed25519 host key or a longer one"},
		"channel 0: open failed: administratively prohibited":                                                                                   {record.Refused, openssh.Prohibited, "AllowTcpForwarding"},
		`the server sent "HTTP/1.1 400" instead of an SSH version`:                                                                              {record.Refused, openssh.NotSSH, "not an SSH server"},
		"no answer in 10s during the login; an agent may be silent, too":                                                                        {record.TimedOut, openssh.SilentAgent, "(ssh-add -l)"},
		"no answer in 10s during the key exchange":                                                                                              {record.TimedOut, openssh.Unknown, "--connect-timeout"},
		"ssh: Could not resolve hostname nas: Name or service not known":                                                                        {record.Unresolved, openssh.Unresolved, "ssh -G -p 2222 nas"},
		`the session ended without a word from ssh: the last line on standard error, which may be the server's banner, is "Connection refused"`: {record.Broken, openssh.Unknown, "see what ssh says: ssh -v -p 2222 nas true"},
		"no byte came back": {record.Broken, openssh.Unknown, "ssh -v -p 2222 nas true"},
		"whatever":          {"", openssh.Unknown, "ssh -v -p 2222 nas true"},
	} {
		got := openssh.Program{}.Hint(t.Context(), d, openssh.Failed{Outcome: tt.outcome, Said: said, Cause: tt.cause})
		if !strings.Contains(got, tt.want) {
			t.Errorf("%q: %q, want %q", said, got, tt.want)
		}
	}
}
