package session

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/openssh"
)

const (
	// replyGrace is for the answer to a signal request.
	replyGrace = 2 * time.Second
	// busyGrace is the time for an answering server to end the commands: there may be hundreds at
	// once.
	busyGrace = 10 * time.Second
)

// finish ends the command: TERM, a grace period, KILL, and then the connection. ended is closed
// when the session is over. If the server refuses signals, a second session does the same, if
// permitted.
func (s *session) finish(ended <-chan struct{}, abort context.Context) {
	reply, grace := s.signal("TERM", ended, abort), fleet.KillGrace
	if reply != refused { // as KILL would be
		if over(ended, abort, fleet.TermGrace) {
			return
		}
		reply = s.signal("KILL", ended, abort)
	}
	switch {
	case reply == refused && s.of.MayKill && signalsLack(string(s.of.ServerVersion()), s.of.User()):
		s.of.killSession(ended, abort)
		fallthrough
	case reply == accepted:
		grace = busyGrace
	}
	if over(ended, abort, grace) {
		return
	}
	s.cut.Store(true)
	s.of.cut() // without a farewell, which a server that reads nothing would hold up
}

// signalsLack reports whether a refused signal is explained by a general limit of the server. If
// not, the command is a forced one (sshd_config(5) ForceCommand, sshd(8) command=), whose signals
// sshd and dropbear refuse: a second session would run it once more. For root that is unknown,
// since sshd signals nothing for root (session.c, session_signal_req).
func signalsLack(version, user string) bool {
	if text, ok := strings.CutPrefix(version, "SSH-2.0-OpenSSH_"); ok {
		var major, minor int
		n, _ := fmt.Sscanf(text, "%d.%d", &major, &minor)
		return user == "root" || n == 2 && (major < 7 || major == 7 && minor < 9)
	}
	// Since 2025 dropbear refuses signals for forced commands only (svr-chansession.c,
	// sessionsignal).
	year, ok := strings.CutPrefix(version, "SSH-2.0-dropbear_")
	return ok && year != "" && year < "2025"
}

// reply is the result of a signal request.
type reply uint8

const (
	unanswered reply = iota
	accepted
	refused
)

// signal asks the server to signal the command's process group (RFC 4254 section 6.9). The RFC
// wants no reply to be requested, but servers give one, and sshd often refuses: for root, for
// forced commands, before 7.9.
func (s *session) signal(name string, ended <-chan struct{}, abort context.Context) reply {
	got := make(chan reply, 1)
	go func() {
		ok, err := s.ch.SendRequest("signal", true, channel.Text(name))
		switch {
		case err != nil:
			got <- unanswered
		case ok:
			got <- accepted
		default:
			got <- refused
		}
	}()
	t := time.NewTimer(replyGrace)
	defer t.Stop()
	select {
	case r := <-got:
		return r
	case <-ended:
	case <-abort.Done():
	case <-t.C:
	}
	return unanswered
}

// killScript ends the process groups of all other commands of its own connection: sshd and dropbear
// make each a child of the process that serves the connection, and leader of a group. They get TERM
// and, if that does not end them, KILL after two seconds.
//
// When the connection ends before the script begins, its parent is init or another reaper, and its
// siblings are half the machine. Therefore it does nothing unless its parent is an SSH server and
// not process 1. The login shell that reads it may be of any kind: therefore the exec and no quote
// inside; the second ps is busybox's.
const killScript = `exec /bin/sh -c '[ "$PPID" -gt 1 ] || exit; ` +
	`l=$(ps -A -o pid= -o ppid= -o pgid= -o comm= 2>/dev/null || ps -o pid,ppid,pgid,comm); ` +
	`parent=$(echo "$l" | while read p pp g c; do [ "$p" = "$PPID" ] && echo "$c"; done); ` +
	`case "$parent" in sshd*|*/sshd*|dropbear*|*/dropbear*) ;; *) exit;; esac; ` +
	`groups=$(echo "$l" | while read p pp g c; do ` +
	`if [ "$pp" = "$PPID" ] && [ "$p" != "$$" ] && [ "$p" = "$g" ]; then echo "$g"; fi; done); ` +
	`for g in $groups; do kill -s TERM -- "-$g"; done; ` +
	`for i in 1 2; do left=; for g in $groups; do kill -s 0 -- "-$g" && left=1; done; [ "$left" ] || exit; sleep 1; done; ` +
	`for g in $groups; do kill -s KILL -- "-$g"; done'`

// killSession runs killScript in a second session of the connection, and returns when it has ended
// or could have.
func (c *Connection) killSession(ended <-chan struct{}, abort context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ch, err := c.Open(abort, line.Ask{Kind: line.Exec, Text: killScript})
		if err != nil {
			return
		}
		defer ch.Close()
		ch.CloseWrite()
		io.Copy(io.Discard, ch)
	}()
	t := time.NewTimer(fleet.TermGrace + fleet.KillGrace + busyGrace)
	defer t.Stop()
	select {
	case <-done:
	case <-ended:
	case <-abort.Done():
	case <-t.C:
	}
}

func over(ended <-chan struct{}, abort context.Context, grace time.Duration) bool {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-abort.Done():
	case <-t.C:
	}
	return false
}

// classes translates causes for a run.
var classes = map[openssh.Cause]fleet.Class{
	openssh.HostKeyChanged:        fleet.HostKeyChanged,
	openssh.HostKeyRevoked:        fleet.HostKeyRevoked,
	openssh.RevocationsUnreadable: fleet.HostKeyRevoked,
	openssh.HostKeyWeak:           fleet.HostKeyWeak,
	openssh.HostKeyUnknown:        fleet.HostKeyUnknown,
	openssh.Unresolved:            fleet.NameFailed,
	openssh.Denied:                fleet.AuthFailed,
	openssh.TooManyKeys:           fleet.AuthFailed,
	openssh.Expired:               fleet.AuthFailed,
	openssh.BadConfiguration:      fleet.Local,
	openssh.NoAlgorithm:           fleet.NoCommonAlgo,
	openssh.Prohibited:            fleet.Refused,
	openssh.ConnectionRefused:     fleet.Refused,
	openssh.Unroutable:            fleet.Unroutable,
	openssh.TimedOut:              fleet.TimedOut,
	openssh.NotSSH:                fleet.NotSSH,
	openssh.Throttled:             fleet.Throttled,
	openssh.Penalized:             fleet.Throttled,
	openssh.NoVersion:             fleet.Throttled,
	openssh.SessionRefused:        fleet.ExecRefused,
	openssh.Corrupted:             fleet.Lost,
	openssh.HungUp:                fleet.Throttled, // before the version line, where nothing has run
}

// ClassOf translates a cause for a run, for every engine: an unknown one means that the connection
// was lost.
func ClassOf(c openssh.Cause) fleet.Class { return cmp.Or(classes[c], fleet.Lost) }

// Said returns a server's text before it ended a login, to append to the reason: often it is the
// only one, such as "System is booting up".
func Said(text string) string {
	const most = 500
	if text = termsafe.OneLine(text); text == "" {
		return ""
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return "; the server said: " + text
}

// During describes in ssh's words the step in which a host was too late, by its phase: whether it
// had sent its version by then, and whether the command was sent.
func During(p fleet.Phase, greeted, sent bool) string {
	switch {
	case sent:
		return "the start of the command"
	case p >= fleet.PhaseExec:
		return "the opening of a session"
	case p >= fleet.PhaseHostkey:
		return "login"
	case p == fleet.PhaseKex && greeted:
		return "key exchange"
	case p == fleet.PhaseKex:
		return "banner exchange"
	}
	return "connect"
}
