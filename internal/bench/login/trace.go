// Package login breaks down a login: how long each of its phases takes with the real ssh, who
// computes and who waits meanwhile, and which waits could be avoided.
//
// The phases come from ssh's own log (ssh -vv, read by openssh), each line stamped when it is
// written; if a relay stands between the two ends (Path), the packets have stamps, too. Phases
// follow each other without gaps, from the start of the program to its end, so that their sum is
// the login.
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

	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Phase is a part of a login, as records have it.
type Phase = record.Phase

// milestones are the ends of the phases: the first event of one of the kinds. A phase whose end is
// not in the log is part of the next one.
var milestones = []struct {
	phase Phase
	ends  []openssh.Kind
}{
	{record.PhaseStart, []openssh.Kind{openssh.Connecting, openssh.Proxy}},
	{record.PhaseTCP, []openssh.Kind{openssh.Connected, openssh.Identity}},
	{record.PhaseVersion, []openssh.Kind{openssh.ServerVersion}},
	{record.PhaseKexInit, []openssh.Kind{openssh.KexInit}},
	{record.PhaseKex, []openssh.Kind{openssh.HostKeySeen}},
	{record.PhaseHostKey, []openssh.Kind{openssh.NewKeysSent}},
	{record.PhaseNewKeys, []openssh.Kind{openssh.NewKeys}},
	{record.PhaseService, []openssh.Kind{openssh.AuthStarted}},
	{record.PhaseAuthNone, []openssh.Kind{openssh.AuthMethods}},
	{record.PhaseQuery, []openssh.Kind{openssh.KeyAccepted}},
	{record.PhaseSign, []openssh.Kind{openssh.LoggedIn}},
	{record.PhaseChannel, []openssh.Kind{openssh.SessionOpened}},
	{record.PhaseExec, []openssh.Kind{openssh.CommandAccepted}},
	{record.PhaseCommand, []openssh.Kind{openssh.ExitStatus, openssh.ExitSignal}},
}

// Line is a line of ssh's log, with its event.
type Line struct {
	At    time.Duration // since the start of the program
	Whole string
	openssh.Event
}

// Login is one watched login.
type Login struct {
	Spans     []record.LoginPhase // their sum is Whole
	Whole     time.Duration       // wall time of the program
	ClientCPU time.Duration       // by the program and its children
	Lines     []Line
	Exit      int    // of ssh
	printed   string // its last line on standard output
	said      string // and on standard error
}

// First returns the first line of a kind.
func (l *Login) First(kinds ...openssh.Kind) (line Line, ok bool) {
	i := slices.IndexFunc(l.Lines, func(line Line) bool { return slices.Contains(kinds, line.Kind) })
	if i < 0 {
		return Line{}, false
	}
	return l.Lines[i], true
}

// Span is the time between two lines.
type Span struct{ Begin, End Line } // End has kind Other if the log ends before it

// Took returns the length of the span.
func (s Span) Took() time.Duration { return s.End.At - s.Begin.At }

// Between returns the spans from lines of a kind, each to the next line of an ending kind. A line
// of that kind in a span begins none, unless it ends it.
func (l *Login) Between(from openssh.Kind, to ...openssh.Kind) (spans []Span) {
	under := false
	for _, line := range l.Lines {
		if under && slices.Contains(to, line.Kind) {
			spans[len(spans)-1].End, under = line, false
		}
		if !under && line.Kind == from {
			spans, under = append(spans, Span{Begin: line}), true
		}
	}
	return spans
}

// FailedError is a login that failed.
type FailedError struct {
	During Phase  // the phase that it was in
	Said   string // ssh's last words: of the server, in part
	Late   bool   // it took longer than it may
	After  time.Duration
	// KeyFile is a known_hosts file that holds another key of the host; "" if none does.
	KeyFile string
	// Status is the exit status of the command if the login itself succeeded: true ends with 0
	// where an account runs commands. Said is then the text of the account instead.
	Status int
}

// Failed returns the failure in the form of ssh's other ones.
func (e *FailedError) Failed() openssh.Failed {
	cause, _ := openssh.CauseOf([]string{e.Said})
	if cause == openssh.HungUp && e.During == record.PhaseVersion {
		cause = openssh.NoVersion
	}
	f := openssh.Failed{Outcome: openssh.OutcomeOf(cause), Said: e.Error(), Cause: cause, KeyFile: e.KeyFile}
	if e.Late {
		f.Outcome = record.TimedOut
		if _, agent := openssh.During(e.During); agent {
			f.Cause = openssh.SilentAgent
		}
	}
	return f
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
		text := fmt.Sprintf("no answer in %s during phase %s", e.After.Round(100*time.Millisecond), e.During)
		words, agent := openssh.During(e.During)
		if words != "" {
			text += " (" + words + ")"
		}
		if agent {
			text += openssh.AgentToo
		}
		return text
	}
	return cmp.Or(e.Said, fmt.Sprintf("ssh failed in phase %s", e.During))
}

// ArgvFunc makes the command line of a login that writes its log to a file.
type ArgvFunc func(log string) []string

// maxSaid is the most that is kept of a program's last output.
const maxSaid = 4 << 10

// Watch carries out a login. dir is for the named pipe that ssh writes its log to: a file would
// give no stamps, standard error has the jump hosts' lines, too, and ssh closes all other
// descriptors. env adds to the environment.
func Watch(ctx context.Context, dir string, argv ArgvFunc, env []string) (*Login, error) {
	pipe, err := proc.OpenPipe(filepath.Join(dir, "login.log"))
	if err != nil {
		return nil, err
	}
	defer pipe.Close()
	line := argv(pipe.Path)
	cmd := exec.Command(line[0], line[1:]...)
	printed, said := &proc.Tail{Max: maxSaid}, &proc.Tail{Max: maxSaid}
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), printed, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = proc.Grace
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { proc.KillGroup(cmd) })
	defer stop()
	l := &Login{}
	var reading sync.WaitGroup
	reading.Go(func() { l.Lines = stamped(pipe.Read, began) })
	err = cmd.Wait()
	l.Whole = time.Since(began)
	pipe.End()
	_ = pipe.Read.SetReadDeadline(time.Now().Add(time.Second)) // a process that ssh started may hold it
	reading.Wait()
	l.ClientCPU = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	l.Exit, l.printed, l.said = cmd.ProcessState.ExitCode(), lastLine(printed), lastLine(said)
	return l, l.judge(ctx, err)
}

// judge divides the login, and returns the reason if it failed.
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
	other, _ := l.First(openssh.WrongKey)
	failed := &FailedError{During: during, Said: l.reason(), After: l.Whole, KeyFile: other.Text}
	if during == record.PhaseClose && l.Exit > 0 && l.Exit != lost {
		failed.Said, failed.Status = l.printed, l.Exit
		if openssh.HasExpired([]string{l.said}) {
			failed.Said = l.said
		}
		return failed
	}
	failed.Late = late || strings.Contains(failed.Said, "timed out")
	return failed
}

// lost is the exit status of ssh's own failures (ssh(1), EXIT STATUS).
const lost = 255

// stamped reads lines until the end; lines that are far too long are cut.
func stamped(r io.Reader, began time.Time) (lines []Line) {
	const most = 20_000
	in := bufio.NewReaderSize(r, 64<<10)
	for len(lines) < most {
		text, err := in.ReadSlice('\n')
		if len(text) > 0 {
			lines = append(lines, Line{time.Since(began), strings.TrimRight(string(text), "\r\n"), openssh.ReadEvent(string(text))})
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
			if slices.Contains(milestones[i].ends, line.Kind) {
				at := min(line.At, l.Whole) // it was read when the program had ended
				l.Spans = append(l.Spans, record.LoginPhase{Phase: milestones[i].phase, WallNS: at - from})
				from, next = at, i+1
				break
			}
		}
	}
	last = record.PhaseClose
	if next < len(milestones) {
		last = milestones[next].phase
	}
	l.Spans = append(l.Spans, record.LoginPhase{Phase: last, WallNS: l.Whole - from})
	return last
}

// reason returns the error in the log for ssh's user.
func (l *Login) reason() string {
	var said []string
	for _, line := range l.Lines {
		if line.Kind == openssh.Message && !strings.HasPrefix(line.Whole, " ") { // that continues
			said = append(said, line.Text)
		}
	}
	other := l.said
	if _, greeted := l.First(openssh.AuthStarted, openssh.LoggedIn); greeted { // standard error may have the server's greeting (Banner), which cannot be distinguished from the command's output there
		other = l.printed
	}
	return cmp.Or(openssh.LastWords(said), other)
}

// lastLine returns the last line of a program's output that is not a hint of ours.
func lastLine(said *proc.Tail) string {
	last := ""
	for line := range strings.Lines(strings.TrimSpace(said.String())) {
		if !strings.Contains(line, "hint: ") {
			last = strings.TrimSuffix(line, "\n")
		}
	}
	return last
}
