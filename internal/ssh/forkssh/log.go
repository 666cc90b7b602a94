package forkssh

import (
	"bytes"
	"net"
	"strconv"
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
	before   []string // the last lines on standard error before the command's
	stderr   int      // bytes of the command's standard error that have reached ssh
	began    bool     // the command's output has begun, and was separated from the lines before it
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

// foreign returns how many bytes at the beginning of a text on standard error are not the
// command's: a banner, or words of the programs of the connection, such as a jump host. ssh logs
// the command's before it writes them, so its log so far decides. Through a ControlMaster, and
// under -q, it does not. Where a program writes as well, a text of both counts as the command's,
// and so does a line that may be: nothing of the command's is lost.
func (l *log) foreign(text []byte) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.own.raw == nil || l.began || l.shared {
		return 0
	}
	l.own.catchUp()
	n := len(text)
	switch {
	case l.shared, !l.spoke:
		n = 0
	case l.stderr > 0:
		l.began = true
		if n = bytes.LastIndexByte(text[:max(0, n-l.stderr)], '\n') + 1; l.proxy != "" {
			n = 0
		}
	}
	for line := range bytes.Lines(text[:n]) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			l.before = append(l.before, string(line[:min(len(line), maxLine)]))
		}
	}
	l.before = l.before[max(0, len(l.before)-maxMessages):]
	return n
}

// banner returns the last line before the command's.
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
	case openssh.ErrorOutput:
		n, _ := strconv.Atoi(e.Text)
		l.stderr += n
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
