// Package sudo runs commands on hosts as another user by sudo(8), with a password that is given to
// sudo's own prompt and to nothing else. It is in no argument list, log or record.
package sudo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
)

// Executor wraps another one so that commands run by sudo.
type Executor struct {
	fleet.Executor
	User     string // "" = root
	Password *Password
	// Timeout is the time for sudo from the start or from the answer to the command; 0 is a
	// minute.
	Timeout time.Duration
}

var (
	errNone   = errors.New("sudo asks for a password, and none was given")
	errSilent = errors.New("sudo did not start the command in time")
)

var userName = wildcard.Regexp(`^(#[0-9]+|[A-Za-z0-9_][A-Za-z0-9_.-]*\$?)$`)

// CheckUser refuses an invalid user name for sudo -u.
func CheckUser(name string) error {
	if name != "" && !userName().MatchString(name) {
		return fmt.Errorf("%q is not a user name", name)
	}
	return nil
}

// Execute runs cmd by sudo. A Dialogue gets an SFTP server that runs by sudo.
func (e *Executor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	d := newDialog(cmd.Input)
	options := []string{"-S", "-p", string(d.prompt)}
	program := e.program(options, d.beginning()+cmd.Line)
	if talk := cmd.Dialogue; talk != nil {
		program = find + e.program(append(options, "-H"), d.beginning()+server) + ` "$p"`
		cmd.Program = true
		cmd.Dialogue = func(ctx context.Context, h host.Host, ch fleet.Channel) error {
			defer context.AfterFunc(ctx, d.leave)()
			return talk(ctx, h, newChannel(ch, e, d))
		}
	} else {
		cmd.Input = d
	}
	cmd.Line, d.program = remotesh.Command(program)
	a.Through(d.filter)
	ctx, end := context.WithCancelCause(ctx)
	var talk sync.WaitGroup
	ended := make(chan struct{})
	talk.Go(func() { e.talk(ctx, h.String(), d, a, ended, end) })
	o := e.Executor.Execute(ctx, h, cmd, a)
	close(ended)
	talk.Wait()
	cause := context.Cause(ctx)
	end(nil)
	a.Through(nil)
	for _, s := range []fleet.Stream{fleet.Stdout, fleet.Stderr} {
		if rest := d.rest(s); len(rest) > 0 {
			a.Output(s, rest) // the run reports its error
		}
	}
	return e.judge(o, d, cause)
}

// program returns the program for the host's sh. sudo reads the password from standard input (-S)
// and asks for it with a prompt of ours (-p).
func (e *Executor) program(options []string, line string) string {
	words := append([]string{"exec", "sudo"}, options...)
	if e.User != "" {
		words = append(words, "-u", shell.Word(e.User))
	}
	return strings.Join(append(words, "--", "sh", "-c", shell.Word(line)), " ")
}

// talk answers the prompt, and ends what waits for something else.
func (e *Executor) talk(ctx context.Context, name string, d *dialog, a fleet.Attempt, ended <-chan struct{}, end context.CancelCauseFunc) {
	offered := false
	defer func() {
		if offered {
			prompts, running, _ := d.facts()
			e.Password.Told(name, running, prompts > 1)
		}
	}()
	if !e.asked(d, a, ended, end) {
		return
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-ended:
			stop()
		case <-waiting.Done():
		}
	}()
	if err := e.Password.Offer(waiting, name); err != nil {
		end(err)
		return
	}
	offered = true
	d.give(e.Password.Text())
	timer := time.NewTimer(e.timeout())
	defer timer.Stop()
	select {
	case <-d.started:
	case <-d.close:
	case <-ended:
	case <-timer.C:
		end(errSilent)
	}
}

// asked waits for the prompt. What asks for something else, such as a code of a second factor,
// waits for ever: it gets nothing.
func (e *Executor) asked(d *dialog, a fleet.Attempt, ended <-chan struct{}, end context.CancelCauseFunc) bool {
	look := time.NewTicker(e.timeout() / 10)
	defer look.Stop()
	for looks := 0; looks < 10; {
		select {
		case <-d.asked:
			return true
		case <-d.started:
			return false
		case <-ended:
			return false
		case <-look.C:
			if a.Phase() == fleet.PhaseExec {
				looks++
			}
		}
	}
	end(errSilent)
	return false
}

func (e *Executor) timeout() time.Duration { return cmp.Or(e.Timeout, time.Minute) }

// judge describes the end of the command if sudo decided about it.
func (e *Executor) judge(o fleet.Outcome, d *dialog, cause error) fleet.Outcome {
	prompts, running, last := d.facts()
	if running || o.Ran == fleet.RanNo {
		return o
	}
	decided := o.Class == fleet.NoFailure || errors.Is(cause, errSilent) || prompts > 0 && o.Class == fleet.Cancelled && !errors.Is(cause, fleet.ErrInterrupted)
	if !decided {
		return o
	}
	o.Ran, o.Class, o.Hint = fleet.RanNo, fleet.Privilege, ""
	switch {
	case errors.Is(cause, errNone):
		o.Err, o.Hint = errNone.Error(), "run from a terminal, or use --password-command"
	case cause != nil:
		o.Err = cause.Error()
	case prompts > 1:
		o.Err = "sudo did not accept the password"
	default:
		o.Err = fmt.Sprintf("sudo did not run the command (exit %d)", o.Exit)
	}
	if said := termsafe.Line(text.LastLine(last)); said != "" && prompts < 2 && !errors.Is(cause, errNone) {
		o.Err += ": " + said
	}
	o.Exit, o.Signal = -1, ""
	return o
}
