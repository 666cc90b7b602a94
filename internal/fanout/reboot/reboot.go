// Package reboot runs commands that reboot their hosts, and waits until each is back, which its
// boot id shows.
package reboot

import (
	"bytes"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
)

// Executor wraps another one so that a command ends when the reboot that it causes is over.
type Executor struct {
	fleet.Executor
	Plain   fleet.Executor // asks hosts that are back; without sudo
	Waiting func()         // called once, when the first host is waited for

	once sync.Once
}

// shown prints a mark and the boot id, an empty one where there is none: in any login shell, before
// another command, without a byte of its input.
func shown(mark string) string {
	return `/bin/sh -c 'id=$( (cat /proc/sys/kernel/random/boot_id || sysctl -n kern.bootsessionuuid || sysctl -n kern.boottime || who -b) 2>/dev/null ); ` +
		`echo ` + mark + ` $id' </dev/null; `
}

// Execute runs cmd once, and then waits until the host shows another boot id, or ctx ends.
func (e *Executor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	w := &watch{Attempt: a, mark: []byte("sshpace-" + rand.Text())}
	cmd.Line = shown(string(w.mark)) + cmd.Line
	o := e.Executor.Execute(ctx, h, cmd, w)
	w.release()
	switch before := string(w.id); {
	case ctx.Err() != nil || !reboots(&o):
	case before != "":
		e.once.Do(e.Waiting)
		e.wait(ctx, h, a, before, &o)
	case w.seen || o.Class != fleet.Lost:
		o.Class, o.Exit, o.Hint = fleet.NoStatus, -1, ""
		o.Err = "not known whether it has rebooted: the host shows no boot id"
	}
	return o
}

// reboots reports whether a command may have caused a reboot, by its end: success, or a lost
// connection.
func reboots(o *fleet.Outcome) bool {
	switch {
	case o.Ran == fleet.RanNo:
		return false
	case o.Class == fleet.NoFailure:
		return o.Exit == 0 || o.Signal != ""
	}
	return o.Class == fleet.Lost || o.Class == fleet.NoStatus
}

// longestPause is between two looks at a host; the first ones are closer.
const longestPause = 5 * time.Second

// wait waits until the host shows another boot id than before, and records it, or why it did not.
func (e *Executor) wait(ctx context.Context, h host.Host, a fleet.Attempt, before string, o *fleet.Outcome) {
	began, last := time.Now(), "it has not rebooted"
	for pause := time.Second; sched.For(ctx, pause); pause = min(2*pause, longestPause) {
		w := &watch{Attempt: a, mark: []byte("sshpace-" + rand.Text()), asks: true}
		answer := e.Plain.Execute(ctx, h, fleet.Command{Line: shown(string(w.mark))}, w)
		switch id := string(w.id); {
		case ctx.Err() != nil: // which ended the look
		case id == before:
			last = "it answers, and has not rebooted"
		case id != "":
			*o = fleet.Outcome{Engine: o.Engine, Addr: o.Addr, Ran: fleet.RanYes, Note: "back with another boot id, " + time.Since(began).Round(time.Second).String() + " after the command"}
			return
		case answer.Err != "":
			last = answer.Err
		}
	}
	class, _ := fleet.Stopped(context.Cause(ctx))
	*o = fleet.Outcome{Engine: o.Engine, Addr: o.Addr, Ran: fleet.RanYes, Exit: -1, Class: class, Err: "not seen back after the command: " + last}
}

// watch takes the mark and the boot id out of the output of an Attempt. One that only asks passes
// nothing on, and leaves the phases of the command alone.
type watch struct {
	fleet.Attempt
	mark []byte
	asks bool

	mu   sync.Mutex
	held []byte // of standard output, before the end of the line with the mark
	seen bool
	id   []byte
}

// mostHeld is the output of start-up files that may precede the mark, in bytes.
const mostHeld = 64 << 10

func (w *watch) Output(s fleet.Stream, data []byte) error {
	if s == fleet.Stdout {
		data = w.without(data)
	}
	if w.asks || len(data) == 0 {
		return nil
	}
	return w.Attempt.Output(s, data)
}

// without removes the line with the mark.
func (w *watch) without(data []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen {
		return data
	}
	w.held = append(w.held, data...)
	before, line, marked := bytes.Cut(w.held, w.mark)
	id, after, ended := bytes.Cut(line, []byte("\n"))
	if marked && ended {
		w.seen, w.id = true, bytes.TrimSpace(id)
		return append(before, after...)
	}
	if len(w.held) < mostHeld {
		return nil
	}
	held := w.held
	w.held = nil
	return held
}

// release passes on output that ended before the mark.
func (w *watch) release() {
	if !w.seen && len(w.held) > 0 {
		_ = w.Attempt.Output(fleet.Stdout, w.held) // the run reports its error
	}
}

func (w *watch) Through(f func(fleet.Stream, []byte) []byte) {
	if !w.asks {
		w.Attempt.Through(f)
	}
}

// Near is false for a look: a host that boots may end its login.
func (w *watch) Near() bool { return !w.asks && w.Attempt.Near() }
