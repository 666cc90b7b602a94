package forkssh

import (
	"bytes"
	"net"
	"sync"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// log holds ssh's own messages, at LogLevel DEBUG2: how far it came, and why it failed; and those
// of the ssh to each jump host.
type log struct {
	login   // to the host
	jumps   jumpLogins
	attempt fleet.Attempt
	started func()          // the command runs; may be called again
	granted <-chan struct{} // closed by that
	own     pipe

	mu       sync.Mutex
	spoke    bool     // there is a log at all
	status   bool     // the server sent an exit status
	signal   bool     // the server sent an exit signal
	sent     bool     // the command was sent
	accepted bool     // and the server starts it
	proxy    string   // command that was started as a proxy
	shared   bool     // the session is one of a ControlMaster
	master   bool     // a ControlPersist master remains
	before   []string // the last lines on standard error before the command was sent
	addr     string
}

const (
	maxLine     = 4 << 10
	maxMessages = 16
)

// newLog calls started once the command runs, or at once if nothing will be known.
func newLog(a fleet.Attempt, jumps []*conf.Resolved, started func()) *log {
	granted := make(chan struct{})
	return &log{attempt: a, jumps: jumpLogins{jumps: jumps}, granted: granted, started: sync.OnceFunc(func() { started(); close(granted) })}
}

// isGranted reports whether the command runs.
func (l *log) isGranted() bool {
	select {
	case <-l.granted:
		return true
	default:
		return false
	}
}

// open makes the pipes: of ssh, and of the ssh to jump hosts, if there are any. The names are ""
// where ssh cannot open them; then only the exit code is known.
func (l *log) open() (own, hops string, closeLog func(), err error) {
	l.own = pipe{mu: &l.mu, line: l.line}
	if own, err = l.own.open(); err != nil {
		return "", "", nil, err
	}
	if own == "" {
		l.started()
	}
	if own == "" || len(l.jumps.jumps) == 0 {
		return own, "", l.own.close, nil
	}
	l.jumps.log = pipe{mu: &l.mu, line: l.jumps.line}
	if hops, err = l.jumps.log.open(); err != nil {
		l.own.close()
		return "", "", nil, err
	}
	return own, hops, func() { l.jumps.log.close(); l.own.close() }, nil
}

// catchUp reads ssh's messages so far.
func (l *log) catchUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.own.catchUp()
}

// theirs reports whether text on standard error is the command's. Text before the command was sent
// is not: it is a banner, or was written by the programs of the connection, such as a jump host.
// ssh logs the sending first, so its log so far decides. Through a ControlMaster it does not.
func (l *log) theirs(text []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own.raw == nil || l.sent || l.shared {
		return true
	}
	l.own.catchUp()
	if l.sent || l.shared {
		return true
	}
	for line := range bytes.Lines(text) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.before = append(l.before, string(line[:min(len(line), maxLine)]))
		}
	}
	l.before = l.before[max(0, len(l.before)-maxMessages):]
	return false
}

// banner returns the last line before the command was sent.
func (l *log) banner() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.before) == 0 {
		return ""
	}
	return l.before[len(l.before)-1]
}

func (l *log) line(s string) {
	l.spoke = l.spoke || s != ""
	e := openssh.ReadEvent(s)
	l.take(e)
	if phase, ok := marks[e.Kind]; ok {
		l.attempt.Reached(phase)
	}
	switch e.Kind {
	case openssh.Connecting:
		if address, port := e.Place(); address != "" {
			l.addr = net.JoinHostPort(address, port)
		}
	case openssh.Proxy:
		l.proxy = e.Text
	case openssh.ServerVersion:
		l.attempt.Alive()
	default:
		l.note(e.Kind)
	}
}

// note records an event for later.
func (l *log) note(kind openssh.Kind) {
	switch kind {
	case openssh.CommandSent:
		l.sent = true
	case openssh.MasterOpened:
		l.sent, l.shared = true, true
		l.started()
	case openssh.Multiplexed:
		l.shared = true
	case openssh.CommandAccepted:
		l.accepted = true
		l.started()
	case openssh.MasterStays:
		l.master = true
	case openssh.ExitStatus:
		l.status = true
	case openssh.ExitSignal:
		l.signal = true
	}
}
