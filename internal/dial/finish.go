package dial

import (
	"context"
	"io"
	"time"

	"golang.org/x/crypto/ssh"
)

// Grace periods when a command is ended.
const (
	replyGrace = 500 * time.Millisecond // for the answer to a signal request
	termGrace  = 2 * time.Second        // between TERM and KILL
	killGrace  = time.Second            // between KILL and closing the connection
)

// finish ends the command: TERM, a grace period, KILL, and then the connection.
// ended is closed when the session is over.
func (s *session) finish(ended <-chan struct{}, abort context.Context, mayKill bool) {
	for _, step := range []struct {
		signal string
		grace  time.Duration
	}{{"TERM", termGrace}, {"KILL", killGrace}} {
		if s.signal(step.signal, ended, abort) == refused && mayKill {
			s.link.killSession(step.signal, ended, abort)
		}
		if over(ended, abort, step.grace) {
			return
		}
	}
	s.ch.Close()
	s.link.net.Close()
}

// reply is what became of a signal request.
type reply uint8

const (
	unanswered reply = iota
	accepted
	refused
)

// signal asks the server to signal the command's process group (RFC 4254
// section 6.9). The RFC wants no reply to be asked for, but servers give one,
// and sshd often refuses: for root, for an sshd without privilege separation,
// for forced commands, before 7.9 (session.c, session_signal_req).
func (s *session) signal(name string, ended <-chan struct{}, abort context.Context) reply {
	got := make(chan reply, 1)
	go func() {
		ok, err := s.ch.SendRequest("signal", true, ssh.Marshal(struct{ Name string }{name}))
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

// killScript signals the process groups of all other commands of its own
// connection: sshd and dropbear make each a child of the process that serves
// the connection, and leader of a group.
//
// When the connection ends before the script begins, its parent is init or
// another reaper, and its siblings are half the machine. Hence it does nothing
// unless its parent is an SSH server and not process 1. The login shell that
// reads it may be of any kind, hence the exec and no quote inside; the second
// ps is busybox's.
func killScript(signal string) string {
	return `exec /bin/sh -c '[ "$PPID" -gt 1 ] || exit; ` +
		`l=$(ps -A -o pid= -o ppid= -o pgid= -o comm= 2>/dev/null || ps -o pid,ppid,pgid,comm); ` +
		`parent=$(echo "$l" | while read p pp g c; do [ "$p" = "$PPID" ] && echo "$c"; done); ` +
		`case "$parent" in sshd*|*/sshd*|dropbear*|*/dropbear*) ;; *) exit;; esac; ` +
		`echo "$l" | while read p pp g c; do ` +
		`if [ "$pp" = "$PPID" ] && [ "$p" != "$$" ] && [ "$p" = "$g" ]; then kill -s ` + signal + ` -- "-$g"; fi; done'`
}

// killSession runs killScript in a second session of the connection.
func (l *link) killSession(signal string, ended <-chan struct{}, abort context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		ch, reqs, err := l.OpenChannel("session", nil)
		if err != nil {
			return
		}
		defer ch.Close()
		go ssh.DiscardRequests(reqs)
		if ok, err := ch.SendRequest("exec", true, ssh.Marshal(struct{ Command string }{killScript(signal)})); err != nil || !ok {
			return
		}
		ch.CloseWrite()
		go io.Copy(io.Discard, ch.Stderr())
		io.Copy(io.Discard, ch)
	}()
	t := time.NewTimer(termGrace)
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
