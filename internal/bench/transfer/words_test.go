//go:build linux

package transfer

import (
	"context"
	"testing"
)

// What a program says in one sentence is told whole, and other lines are not drawn into it.
func TestWhy(t *testing.T) {
	for said, want := range map[string]string{
		"Using username \"x\".\nThe cipher selected for this session is\nChaCha20-Poly1305, which, with this server, is vulnerable to\nthe 'Terrapin' attack, potentially allowing an\nattacker to modify the session.\nConnection abandoned.\n": "The cipher selected for this session is ChaCha20-Poly1305, which, with this server, is vulnerable to the 'Terrapin' attack, potentially allowing an attacker to modify the session.",
		"bind [127.0.0.1]:9: Address already in use\nchannel_setup: cannot listen to port: 9\nCould not request local forwarding.\n":                                                                                                             "bind [127.0.0.1]:9: Address already in use",
		"subsystem request failed on channel 0\n/usr/bin/scp: Connection closed\n":                                                                                                                                                               "subsystem request failed on channel 0",
		"sh: 1: /nowhere/sftp-server: not found\nscp: Connection closed\n":                                                                                                                                                                       "sh: 1: /nowhere/sftp-server: not found",
		"/usr/bin/scp: Connection closed\n":   "/usr/bin/scp: Connection closed",
		"scp: write remote \"/x\": Failure\n": "scp: write remote \"/x\": Failure",
	} {
		l := newLastWords()
		l.Write([]byte(said))
		if got := l.why(context.Canceled); got != want {
			t.Errorf("%q says\n%s, want\n%s", said, got, want)
		}
	}
}
