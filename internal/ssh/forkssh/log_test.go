package forkssh

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// TestLateReader: a banner is told from the command's standard error even if both are read at once,
// and nothing of the latter is taken for a banner.
func TestLateReader(t *testing.T) {
	const sent, came = "debug1: Sending command: x\n", "debug2: channel 0: rcvd ext data 4\n"
	for name, test := range map[string]struct {
		log    string
		texts  []string // one read each
		theirs string
		before []string
	}{
		"banner, read before":   {"debug1: x\n", []string{"hello\n"}, "", []string{"hello"}},
		"banner, read after":    {sent, []string{"hello\n"}, "", []string{"hello"}},
		"both at once":          {sent + came, []string{"one\ntwo\nwar\n"}, "war\n", []string{"one", "two"}},
		"in pieces":             {sent + came, []string{"war", "\n"}, "war\n", nil},
		"more arrives":          {sent + came + came, []string{"hello\nwar\n", "mor\n"}, "hello\nwar\nmor\n", nil},
		"the program's as well": {"debug1: Executing proxy command: exec nc\n" + sent + came, []string{"war\nway\n"}, "war\nway\n", nil},
		"over a master":         {"debug1: mux_client_request_session: master session id: 2\n", []string{"war\n"}, "war\n", nil},
		"ssh -q":                {"", []string{"war\n"}, "war\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(ignored{}, nil, func() {})
			path, _, closeLog, err := l.open()
			if err != nil {
				t.Fatal(err)
			}
			defer closeLog()
			if err := os.WriteFile(path, []byte(test.log), 0); err != nil {
				t.Fatal(err)
			}
			theirs := ""
			for _, text := range test.texts {
				theirs += text[l.foreign([]byte(text)):]
			}
			if theirs != test.theirs || !slices.Equal(l.before, test.before) {
				t.Errorf("%q is the command's, before it came %q", theirs, l.before)
			}
		})
	}
}

// ignored is an attempt that nobody looks at.
type ignored struct{ fleet.Attempt }

func (ignored) Reached(fleet.Phase) {}

// TestLateBanner: a banner that is read after the end of the output is known to the Dialogue.
func TestLateBanner(t *testing.T) {
	ssh := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(ssh, []byte(`#!/bin/sh
while [ "$1" != -E ]; do shift; done
printf '%s\n' 'debug1: Sending subsystem: sftp' 'debug2: subsystem request accepted on channel 0' >"$2"
exec >&-
sleep 0.3
echo 'No SFTP for you' >&2
`), 0o700); err != nil {
		t.Fatal(err)
	}
	banner := ""
	talk := func(_ context.Context, _ host.Host, c fleet.Channel) error {
		_, err := io.Copy(io.Discard, c)
		banner = c.Banner()
		return err
	}
	e := New(Options{Binary: ssh})
	if _, err := fanout.Run(t.Context(), fanout.Params{}, []host.Host{{Name: "127.0.3.1"}}, fleet.Command{Line: "sftp", Dialogue: talk}, e, &sshtest.Told{}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(banner, "No SFTP") {
		t.Errorf("the banner is %q", banner)
	}
}
