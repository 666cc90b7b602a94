package dial_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// TestProxyCommand connects to an sshd that is no network server at all.
func TestProxyCommand(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	s := sshtest.StartSshd(t)
	tg := sshdTarget(s)
	tg.ProxyCommand = fmt.Sprintf("/usr/sbin/sshd -i -f %s/sshd_config 2>/dev/null", s.Dir)
	var c collect
	for i, r := range run(t, fleet.Params{}, tg, hosts(5), fleet.Command{Line: "echo here"}, &c) {
		if r.Status() != fleet.OK || c.text(i, fleet.Stdout) != "here\n" {
			t.Errorf("%+v", r)
		}
	}
}

// TestProxyCommandFails says what the command said, and leaves none behind.
func TestProxyCommandFails(t *testing.T) {
	t.Setenv("SHELL", "/bin/sh")
	s := (&sshtest.Server{}).Start(t)
	pid := filepath.Join(t.TempDir(), "pid")
	tests := []struct {
		name, command, text string
		class               fleet.Class
	}{
		{"ends", "sh -c 'echo no \x1b[31mway >&2; exit 3'", "ProxyCommand for 127.0.1.1: no [31mway", fleet.Lost},
		{"missing", "/no/such/program", "ProxyCommand for 127.0.1.1: ", fleet.Lost},
		{"stalls", "sh -c 'echo $$ > " + pid + "; sleep 600'", "timed out during banner exchange", fleet.TimedOut},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			waittest.InTime(t, time.Second, func(limit time.Duration) error {
				tg := target(t, s)
				tg.ProxyCommand, tg.ConnectTimeout = test.command, limit
				r := run(t, fleet.Params{}, tg, hosts(1), fleet.Command{Line: "x"}, &collect{})[0]
				if r.Class != test.class || !strings.Contains(r.Err, test.text) {
					return fmt.Errorf("got %+v", r)
				}
				if test.class != fleet.TimedOut {
					return nil
				}
				var n int
				data, _ := os.ReadFile(pid)
				if _, err := fmt.Sscan(string(data), &n); err != nil {
					return fmt.Errorf("it has not begun: %w", err)
				}
				waittest.Gone(t, n)
				return nil
			})
		})
	}
}
