// Package login takes a login apart: how long each of its phases takes with
// the real ssh, who computes and who waits meanwhile, and which waits nobody
// needs.
//
// The phases are those that ssh itself tells of (ssh -vv), each line stamped when
// it is written; where a relay stands between the two ends (Path), the packets
// have stamps, too. Phases follow each other without gaps, from the start of the
// program to its end, so that their sum is the login.
package login

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Phase is a part of a login. The next begins where it ends.
type Phase string

// The phases, in order.
const (
	Start    Phase = "start"   // the program, its configuration, the name of the host
	TCP      Phase = "tcp"     // connecting, or what a ProxyCommand takes
	Version  Phase = "version" // until the server's version line
	KexInit  Phase = "kexinit" // until the server's list of algorithms
	Kex      Phase = "kex"     // until its half of the key exchange
	HostKey  Phase = "hostkey" // deciding about its key: known_hosts
	NewKeys  Phase = "newkeys" // until its new keys
	Service  Phase = "service" // until it accepts the service
	AuthNone Phase = "none"    // the first request, which only asks for methods
	Query    Phase = "query"   // offering keys until one would do
	Sign     Phase = "sign"    // the signature, until we are in
	Channel  Phase = "channel" // opening a session
	Exec     Phase = "exec"    // until the server starts the command
	Command  Phase = "command" // the command, start-up files of the shell included
	Close    Phase = "close"   // until the program ends
)

// milestones are the ends of the phases: the first line with one of the texts
// (clientloop.c, kex.c, packet.c, ssh.c, sshconnect.c, sshconnect2.c of OpenSSH 8
// to 10). A phase whose end is never told is part of the next one.
var milestones = []struct {
	phase Phase
	texts []string
}{
	{Start, []string{"debug1: Connecting to ", "debug1: Executing proxy "}},
	{TCP, []string{"debug1: Connection established", "debug1: identity file "}},
	{Version, []string{"debug1: Remote protocol version "}},
	{KexInit, []string{"debug1: SSH2_MSG_KEXINIT received"}},
	{Kex, []string{"debug1: Server host key: ", "debug1: Server host certificate: "}},
	{HostKey, []string{"debug1: SSH2_MSG_NEWKEYS sent"}},
	{NewKeys, []string{"debug1: SSH2_MSG_NEWKEYS received"}},
	{Service, []string{"debug1: SSH2_MSG_SERVICE_ACCEPT received"}},
	{AuthNone, []string{"debug1: Authentications that can continue: "}},
	{Query, []string{"debug1: Server accepts key: "}},
	{Sign, []string{"debug1: Authentication succeeded", "Authenticated to "}},
	{Channel, []string{"debug2: channel_input_open_confirmation: ", "debug2: channel 0: open confirm "}},
	{Exec, []string{"debug2: exec request accepted on channel ", "debug2: shell request accepted on channel "}},
	{Command, []string{"debug1: client_input_channel_req: channel 0 rtype exit-"}},
}

// Span is how long a phase took.
type Span struct {
	Phase Phase         `json:"phase"`
	NS    time.Duration `json:"ns"`
}

// Line is a line of ssh's log.
type Line struct {
	At   time.Duration // since the start of the program
	Text string
}

// Login is one login that was watched.
type Login struct {
	Spans     []Span        // their sum is Whole
	Whole     time.Duration // wall time of the program
	ClientCPU time.Duration // by the program and what it started
	Lines     []Line
	Exit      int    // of ssh
	printed   string // its last line on standard output
	said      string // and on standard error
}

// Span is how long a phase took; 0 where it was not told.
func (l *Login) Span(p Phase) time.Duration {
	for _, s := range l.Spans {
		if s.Phase == p {
			return s.NS
		}
	}
	return 0
}

// Has tells whether ssh's log has a line with a text, and returns the first.
func (l *Login) Has(text string) (line string, ok bool) {
	for _, line := range l.Lines {
		if strings.Contains(line.Text, text) {
			return line.Text, true
		}
	}
	return "", false
}

// Count is how many lines have a text.
func (l *Login) Count(text string) (n int) {
	for _, line := range l.Lines {
		if strings.Contains(line.Text, text) {
			n++
		}
	}
	return n
}

// FailedError is a login that did not come to its end.
type FailedError struct {
	During Phase  // the phase that it was in
	Said   string // ssh's last words: of the server, in part
	Late   bool   // it took longer than it may
	After  time.Duration
	// Status is how the command ended where the login itself came to its end: true ends
	// with 0 where an account runs commands. Said is then what was said in its place.
	Status int
}

func (e *FailedError) Error() string {
	if e.Status > 0 {
		said := ""
		if e.Said != "" {
			said = fmt.Sprintf(": it said %q", e.Said)
		}
		return fmt.Sprintf("the login works, but the account runs no commands (exit status %d)%s", e.Status, said)
	}
	if e.Late {
		return fmt.Sprintf("no answer in %s during phase %s%s", e.After.Round(100*time.Millisecond), e.During, late[e.During])
	}
	return cmp.Or(e.Said, "ssh failed") + fmt.Sprintf(" (phase %s)", e.During)
}

// late is what people should know of phases in which a login waits.
var late = map[Phase]string{
	Version: " (version lines)", KexInit: " (lists of algorithms)", Kex: " (key exchange)",
	Service: "; an agent may be silent, too", Query: "; an agent may be silent, too", Sign: "; an agent may be silent, too",
	Channel: " (opening a session)", Exec: " (asking for the command)", Command: " (running it)",
}

// ArgvFunc makes the command line of a login that writes its log to a file.
type ArgvFunc func(log string) []string

// Watch carries out a login. dir is for the named pipe that ssh writes its log
// to: a file would give no stamps, standard error has the jump hosts' lines, too,
// and ssh closes all other descriptors. env adds to the environment.
func Watch(ctx context.Context, dir string, argv ArgvFunc, env []string) (*Login, error) {
	pipe, err := openPipe(filepath.Join(dir, "login.log"))
	if err != nil {
		return nil, err
	}
	defer pipe.close()
	line := argv(pipe.path)
	cmd := exec.Command(line[0], line[1:]...)
	var printed, said lastLine
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &printed, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = time.Second // what ssh has left behind may hold its standard error
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { proc.KillGroup(cmd) })
	defer stop()
	l := &Login{}
	var reading sync.WaitGroup
	reading.Go(func() { l.Lines = stamped(pipe.read, began) })
	err = cmd.Wait()
	l.Whole = time.Since(began)
	pipe.write.Close()
	_ = pipe.read.SetReadDeadline(time.Now().Add(time.Second)) // a process behind ssh may hold it
	reading.Wait()
	l.ClientCPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	l.Exit, l.printed, l.said = cmd.ProcessState.ExitCode(), string(printed), string(said)
	return l, l.judge(ctx, err)
}

// judge divides the login, and says why it failed, if it did.
func (l *Login) judge(ctx context.Context, err error) error {
	during := l.divide()
	late := errors.Is(context.Cause(ctx), context.DeadlineExceeded)
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil && !late:
		return context.Canceled
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return err
	}
	failed := &FailedError{During: during, Said: l.reason(), After: l.Whole}
	if during == Close && l.Exit > 0 && l.Exit != lost {
		failed.Said, failed.Status = l.printed, l.Exit
		return failed
	}
	failed.Late = late || strings.Contains(failed.Said, "timed out")
	return failed
}

// lost is how ssh ends that has failed itself (ssh(1), EXIT STATUS).
const lost = 255

// namedPipe is both ends of a pipe that another program opens by its name.
type namedPipe struct {
	path        string
	read, write *os.File
}

func openPipe(path string) (*namedPipe, error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	read, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		os.Remove(path)
		return nil, err
	}
	write, err := os.OpenFile(path, os.O_WRONLY, 0) // until the end, so that it does not come before ssh does
	if err != nil {
		read.Close()
		os.Remove(path)
		return nil, err
	}
	return &namedPipe{path, read, write}, nil
}

func (p *namedPipe) close() {
	p.read.Close()
	p.write.Close()
	os.Remove(p.path)
}

// stamped reads lines until the end; lines that are far too long are cut.
func stamped(r io.Reader, began time.Time) (lines []Line) {
	const most = 20_000
	in := bufio.NewReaderSize(r, 64<<10)
	for len(lines) < most {
		text, err := in.ReadSlice('\n')
		if len(text) > 0 {
			lines = append(lines, Line{time.Since(began), strings.TrimRight(string(text), "\r\n")})
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return lines
		}
	}
	_, _ = io.Copy(io.Discard, r)
	return lines
}

// divide finds the phases, and returns the one that the login ended in.
func (l *Login) divide() (last Phase) {
	var from time.Duration
	next := 0
	for _, line := range l.Lines {
		for i := next; i < len(milestones); i++ {
			if begins(line.Text, milestones[i].texts) {
				at := min(line.At, l.Whole) // it was read when the program had ended
				l.Spans = append(l.Spans, Span{milestones[i].phase, at - from})
				from, next = at, i+1
				break
			}
		}
	}
	last = Close
	if next < len(milestones) {
		last = milestones[next].phase
	}
	l.Spans = append(l.Spans, Span{last, l.Whole - from})
	return last
}

func begins(line string, texts []string) bool {
	for _, t := range texts {
		if strings.HasPrefix(line, t) {
			return true
		}
	}
	return false
}

// reason is the last line of the log that ssh means for its user, or why a master gave no
// session (mux.c), on which other lines follow.
func (l *Login) reason() string {
	for _, line := range l.Lines {
		if strings.HasPrefix(line.Text, "mux_client_request_session: ") {
			return line.Text
		}
	}
	var said []string
	for _, line := range l.Lines {
		if e := openssh.ReadEvent(line.Text); e.Kind == openssh.Message && !strings.HasPrefix(line.Text, " ") { // that goes on
			said = append(said, e.Text)
		}
	}
	if l.greeted() {
		return cmp.Or(openssh.LastWords(said), l.printed)
	}
	return cmp.Or(openssh.LastWords(said), l.said)
}

// greeted tells whether standard error may have the server's greeting (Banner), which no
// reader can tell from what the command says there.
func (l *Login) greeted() bool {
	return slices.ContainsFunc(l.Lines, func(line Line) bool {
		kind := openssh.ReadEvent(line.Text).Kind
		return kind == openssh.AuthStarted || kind == openssh.LoggedIn
	})
}

// lastLine keeps the last line of what is written to it that is no hint of ours.
type lastLine []byte

func (l *lastLine) Write(p []byte) (int, error) {
	const most = 4 << 10
	*l = append(*l, p...)
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(*l)), "\n"), func(line string) bool { return strings.Contains(line, "hint: ") })
	if len(lines) > 0 {
		text := lines[len(lines)-1]
		*l = []byte(text[max(0, len(text)-most):])
	}
	return len(p), nil
}
