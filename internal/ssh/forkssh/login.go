package forkssh

import (
	"strings"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
)

// login is how far an ssh has come with one server, and its messages to its user.
type login struct {
	phase    fleet.Phase
	greeted  bool // the server sent its version
	other    bool // the peer sent a line that is neither SSH's nor sshd's
	loggedIn bool
	messages []string
}

// marks maps ssh's messages to phases.
var marks = map[openssh.Kind]fleet.Phase{
	openssh.Connecting: fleet.PhaseConnect, openssh.Connected: fleet.PhaseKex, openssh.HostKeySeen: fleet.PhaseHostkey,
	openssh.AuthStarted: fleet.PhaseAuth, openssh.LoggedIn: fleet.PhaseExec, openssh.MasterOpened: fleet.PhaseExec,
}

func (l *login) take(e openssh.Event) {
	l.phase = max(l.phase, marks[e.Kind])
	switch e.Kind {
	case openssh.Message:
		if len(l.messages) < maxMessages {
			l.messages = append(l.messages, e.Text)
		}
	case openssh.ServerVersion:
		l.greeted = true
	case openssh.PreBanner:
		l.other = l.other || !openssh.TurnedAway(e.Text)
	case openssh.LoggedIn:
		l.loggedIn = true
	}
}

// cause returns why ssh gave up, by messages and by how far it had come.
func (l *login) cause(messages []string) openssh.Cause {
	cause, message := openssh.CauseOf(messages)
	if _, why, refused := strings.Cut(message, "open failed: "); refused && !l.loggedIn { // by a jump host
		return openssh.NotForwarded(why)
	}
	turnedAway := session.ClassOf(cause) == fleet.Throttled
	switch {
	case turnedAway && l.other:
		return openssh.NotSSH
	case turnedAway && l.phase == fleet.PhaseAuth:
		return openssh.Denied
	case turnedAway && l.phase > fleet.PhaseKex, cause == openssh.TimedOut && l.loggedIn: // ServerAliveInterval
		return openssh.Unknown
	}
	return cause
}

// jumpLogins are the logins to the jump hosts before a host. Each begins when the one before it is
// done, so that one log is enough for all of them.
type jumpLogins struct {
	jumps []*conf.Resolved
	log   pipe
	done  int
	login // the next one
}

func (w *jumpLogins) line(s string) {
	w.take(openssh.ReadEvent(s))
	if w.loggedIn && w.greeted { // some releases say the former twice
		w.done++
		w.login = login{messages: w.messages}
	}
	w.loggedIn = false
}

// stopped returns the jump host that has not accepted ssh's login, nil if all have.
func (w *jumpLogins) stopped() *conf.Resolved {
	if w.log.raw == nil || w.done == len(w.jumps) {
		return nil
	}
	return w.jumps[w.done]
}
