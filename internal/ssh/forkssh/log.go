package forkssh

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
)

// log reads what ssh itself says, at LogLevel DEBUG2: how far it came, and why
// it failed.
type log struct {
	attempt *fleet.Attempt
	started func()          // the command runs; may be called again
	granted <-chan struct{} // closed by that
	pipe    syscall.RawConn
	done    sync.WaitGroup

	mu       sync.Mutex
	part     []byte // of a line whose end has not come
	spoke    bool   // there is a log at all
	status   bool   // the server told an exit status
	signal   bool   // the server told an exit signal
	sent     bool   // the command was sent
	accepted bool   // and the server starts it
	greeted  bool   // the server said its version
	loggedIn bool
	other    bool     // the peer sent a line that is neither SSH's nor sshd's
	proxy    string   // command that was started as a proxy
	shared   bool     // the session is one of a ControlMaster
	master   bool     // a ControlPersist master stays behind
	before   []string // the last lines that came on standard error before the command was sent
	messages []string // of ssh to its user
	addr     string
}

const (
	maxLine     = 4 << 10
	maxMessages = 16
)

// newLog calls started once the command runs, or at once if nothing will be known.
func newLog(a *fleet.Attempt, started func()) *log {
	granted := make(chan struct{})
	return &log{attempt: a, granted: granted, started: sync.OnceFunc(func() { started(); close(granted) })}
}

// isGranted tells whether the command runs.
func (l *log) isGranted() bool {
	select {
	case <-l.granted:
		return true
	default:
		return false
	}
}

// open makes the pipe. The name is one under which another process of the same
// user can open it: ssh closes all inherited descriptors at its start, so it
// cannot be handed one. Where there is no /proc the name is "", and only the
// exit code is known.
func (l *log) open() (path string, closeLog func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("log of ssh: %w", err)
	}
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.Fd())
	pipe, pipeErr := r.SyscallConn()
	if _, err := os.Stat(path); err != nil || pipeErr != nil {
		r.Close()
		w.Close()
		l.started()
		return "", func() {}, nil
	}
	l.pipe = pipe
	l.done.Go(l.read)
	return path, func() { w.Close(); l.wait(r) }, nil
}

// wait ends the reader. A ControlPersist master may keep the pipe open; what ssh has
// written is read in any case, however late the reader is.
func (l *log) wait(r *os.File) {
	r.SetReadDeadline(time.Now().Add(strayGrace))
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = l.pipe.Control(func(fd uintptr) { l.drain(fd) })
	l.line(string(l.part))
	r.Close()
}

// read takes lines until all writers have closed the pipe.
func (l *log) read() {
	_ = l.pipe.Read(func(fd uintptr) (ended bool) { // false waits until there is more
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.drain(fd)
	})
}

// drain takes all that was written so far; ended means that nothing can follow.
func (l *log) drain(fd uintptr) (ended bool) {
	buffer := make([]byte, maxLine)
	for {
		n, err := syscall.Read(int(fd), buffer)
		switch {
		case n > 0:
			l.take(buffer[:n])
		case err == syscall.EINTR:
		default:
			return err != syscall.EAGAIN
		}
	}
}

// catchUp reads what ssh has said by now.
func (l *log) catchUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pipe != nil {
		l.drainAll()
	}
}

func (l *log) drainAll() {
	_ = l.pipe.Control(func(fd uintptr) { l.drain(fd) }) // a closed pipe has said all
}

// take reads the lines that are whole. One that is too long is read in pieces.
func (l *log) take(data []byte) {
	l.part = append(l.part, data...)
	for {
		line, rest, whole := bytes.Cut(l.part, []byte("\n"))
		if !whole && len(l.part) < maxLine {
			return
		}
		l.line(string(line))
		l.part = rest
	}
}

// theirs tells whether text on standard error is the command's. What comes
// before the command was sent is not: it is a banner, or was written by what
// carries the connection, such as a jump host. ssh logs the sending first, so what
// it has logged by now decides. Through a ControlMaster it does not.
func (l *log) theirs(text []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pipe == nil || l.sent || l.shared {
		return true
	}
	l.drainAll()
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

// banner is the last line that came before the command was sent.
func (l *log) banner() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.before) == 0 {
		return ""
	}
	return l.before[len(l.before)-1]
}

// marks are how far ssh is by what it says.
var marks = map[openssh.Kind]fleet.Phase{
	openssh.Connecting: fleet.PhaseConnect, openssh.Connected: fleet.PhaseKex, openssh.HostKeySeen: fleet.PhaseHostkey,
	openssh.AuthStarted: fleet.PhaseAuth, openssh.LoggedIn: fleet.PhaseExec, openssh.MasterOpened: fleet.PhaseExec,
}

func (l *log) line(s string) {
	l.spoke = l.spoke || s != ""
	e := openssh.ReadEvent(s)
	if phase, ok := marks[e.Kind]; ok {
		l.attempt.Reached(phase)
	}
	switch e.Kind {
	case openssh.Message:
		if len(l.messages) < maxMessages {
			l.messages = append(l.messages, e.Text)
		}
	case openssh.Connecting:
		if address, port := e.Place(); address != "" {
			l.addr = net.JoinHostPort(address, port)
		}
	case openssh.Proxy:
		l.proxy = e.Text
	case openssh.ServerVersion:
		l.greeted = true
		l.attempt.Alive()
	case openssh.PreBanner:
		l.other = l.other || !openssh.TurnedAway(e.Text)
	default:
		l.note(e.Kind)
	}
}

// note keeps what is only to be known later.
func (l *log) note(kind openssh.Kind) {
	switch kind {
	case openssh.LoggedIn:
		l.loggedIn = true
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
