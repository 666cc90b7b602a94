package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
)

// remote is the shell of one host. It is the Attempt of its own session.
type remote struct {
	fleet.Attempt // of the line that begins it, for the login
	life          context.Context
	end           context.CancelCauseFunc
	mark          mark
	channel       fleet.Channel // to its driver; set before the first task has ended
	over          chan struct{} // closed when the session has ended
	outcome       fleet.Outcome // of the session; set before that
	streams       [2]stream     // each has one reader

	mu        sync.Mutex
	came      sync.Cond // there is another task, or there will be none
	task      *task     // under way, nil for none
	addr      string    // that was logged in to, "" for a master's connection
	directory string
	died      [2]bool // a stream says that the shell has ended
	gone      string  // why there will be no further task, "" if there may be
}

// task is a line in a shell. The first one of each shell is its beginning. What its streams have
// said is guarded as the shell is.
type task struct {
	ended chan struct{} // closed when both streams have said so
	began [2]bool       // on each stream
	done  [2]bool
	died  bool // the shell has ended with it
	exit  int

	mu      sync.Mutex
	attempt fleet.Attempt // nil: nobody wants the output
	said    []byte        // the last output without an attempt
}

func newTask(a fleet.Attempt) *task { return &task{attempt: a, ended: make(chan struct{}), exit: -1} }

func newRemote(life context.Context, a fleet.Attempt) *remote {
	m := newMark()
	r := &remote{Attempt: a, mark: m, over: make(chan struct{}), streams: [2]stream{{mark: m}, {mark: m}}, task: newTask(nil)}
	r.life, r.end = context.WithCancelCause(life)
	r.came.L = &r.mu
	return r
}

// Abort ends when the session is to be dropped.
func (r *remote) Abort() context.Context { return r.life }

// Admit notes where the login goes.
func (r *remote) Admit(ctx context.Context, addr string) error {
	r.mu.Lock()
	r.addr = addr
	r.mu.Unlock()
	return r.Attempt.Admit(ctx, addr)
}

// Reached passes on the phases of the login.
func (r *remote) Reached(p fleet.Phase) {
	if p < fleet.PhaseExit {
		r.Attempt.Reached(p)
	}
}

// Output takes what comes on standard error.
func (r *remote) Output(s fleet.Stream, data []byte) error {
	r.take(s, data)
	return nil
}

// live holds the session.
func (r *remote) live(by fleet.Executor, h host.Host) {
	line, driver := remotesh.Command(r.mark.driver())
	talk := func(ctx context.Context, _ host.Host, c fleet.Channel) error { return r.talk(ctx, c, driver) }
	r.outcome = by.Execute(r.life, h, fleet.Command{Line: line, Program: true, Dialogue: talk}, r)
	r.leave(r.outcome.Err)
	close(r.over)
}

var (
	errEnded = errors.New("the shell has ended")
	errLate  = errors.New("no shell has begun in time")
	errNone  = errors.New("no shell has begun")
)

// idleBuffer is for waiting for output, on each host.
const idleBuffer = 8 << 10

// talk sends the driver and reads standard output, until the session ends.
func (r *remote) talk(ctx context.Context, c fleet.Channel, driver []byte) error {
	first, start := r.task, time.Now()
	r.channel = c
	defer context.AfterFunc(ctx, func() {
		r.leave(context.Cause(ctx).Error())
		c.Close()
	})()
	defer time.AfterFunc(fleet.ConnectTimeout, func() {
		if !closed(first.ended) {
			c.Close()
		}
	}).Stop()
	c.Write(driver) // a session that has ended still has its last words to read
	var err error
	for buf := make([]byte, idleBuffer); err == nil; {
		var n int
		n, err = c.Read(buf)
		r.take(fleet.Stdout, buf[:n])
	}
	switch {
	case closed(first.ended):
		err = errEnded
	case time.Since(start) >= fleet.ConnectTimeout:
		err = errLate
	default:
		err = errNone
	}
	r.leave(err.Error())
	return err
}

// begin waits until the shell has begun.
func (r *remote) begin(ctx context.Context) *fleet.Outcome {
	defer context.AfterFunc(ctx, func() { r.end(context.Cause(ctx)) })()
	select {
	case <-r.task.ended:
		r.leaveTask()
		return nil
	case <-r.over:
	}
	o := r.outcome
	if o.Ran != fleet.RanNo { // it was no command of the user's
		o.Ran, o.Exit, o.Signal, o.Hint = fleet.RanNo, -1, "", ""
		o.Class = cmp.Or(o.Class, fleet.ExecRefused)
		if said := termsafe.Line(text.LastLine(string(r.task.said))); said != "" {
			o.Err += ": " + said
		}
	}
	return &o
}

// run runs a line.
func (r *remote) run(ctx context.Context, line string, a fleet.Attempt) fleet.Outcome {
	t, gone := r.enter(a)
	if gone != "" {
		return nothing(fleet.ExecRefused, gone)
	}
	defer r.leaveTask()
	defer context.AfterFunc(a.Abort(), func() {
		r.leave("its command was left running")
		r.end(context.Cause(a.Abort()))
	})()
	a.Reached(fleet.PhaseExec)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		r.channel.Write(r.mark.line(line)) // otherwise the session ends
	}()
	killed := false
	select {
	case <-t.ended:
	case <-r.over:
	case <-ctx.Done():
		killed = r.finish(t, sent)
	}
	a.Reached(fleet.PhaseExit)
	return r.outcomeOf(ctx, t, killed)
}

// finish ends a line: INT, once more, and KILL to all processes of the session, of which the shell
// is one. At last it drops the session.
func (r *remote) finish(t *task, sent <-chan struct{}) (killed bool) {
	for _, step := range []struct {
		ask   string
		grace time.Duration
	}{{interrupt, fleet.TermGrace / 2}, {interrupt, fleet.TermGrace / 2}, {kill, fleet.TermGrace}} {
		late := time.After(step.grace)
		select {
		case <-sent:
			r.channel.Write([]byte(step.ask + "\n"))
			killed = step.ask == kill
		case <-late: // the host takes nothing
			continue
		case <-r.over:
			return killed
		}
		select {
		case <-t.ended:
			return killed
		case <-r.over:
			return killed
		case <-late:
		}
	}
	r.leave("its command did not end")
	r.end(context.Canceled)
	return false
}

// outcomeOf describes the end of a line.
func (r *remote) outcomeOf(ctx context.Context, t *task, killed bool) fleet.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, reported, lost := fleet.Outcome{Engine: engineName, Addr: r.addr, Ran: fleet.RanUnknown, Exit: -1}, closed(t.ended), ""
	if r.addr == "" {
		o.Engine = "master"
	}
	if t.began[fleet.Stdout] || t.began[fleet.Stderr] {
		o.Ran = fleet.RanYes
	}
	switch {
	case reported && o.Ran != fleet.RanYes:
		return nothing(fleet.ExecRefused, "its shell had ended before")
	case reported:
		o.Exit = t.exit
	case closed(r.over) && r.outcome.Class == fleet.Lost:
		lost = r.outcome.Err
	default:
		reported = killed
	}
	if t.died || killed {
		o.Note = "its shell has ended"
	}
	o.Ended(ctx, reported, lost)
	return o
}

// converse holds a Dialogue over the connection of the shell, or else over another one.
func (r *remote) converse(ctx context.Context, by fleet.Executor, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	ch, err := r.channel.Open(ctx, cmd.Line)
	if errors.Is(err, fleet.ErrNoExec) {
		return by.Execute(ctx, h, cmd, a)
	}
	o := fleet.Outcome{Engine: engineName}
	if err == nil {
		defer ch.Close()
		a.Reached(fleet.PhaseExec)
		o.Ran = fleet.RanYes
		err = cmd.Dialogue(ctx, h, beside{ch, r.channel, a})
		a.Reached(fleet.PhaseExit)
	}
	lost := ""
	if err != nil && closed(r.over) {
		lost = r.outcome.Err
	}
	o.Conversed(ctx, err, lost)
	return o
}

// beside is a subsystem beside a shell.
type beside struct {
	io.ReadWriteCloser
	shell   fleet.Channel
	attempt fleet.Attempt
}

func (b beside) Open(ctx context.Context, subsystem string) (io.ReadWriteCloser, error) {
	return b.shell.Open(ctx, subsystem)
}

func (b beside) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	return b.shell.Exec(ctx, line, input)
}

func (b beside) Output(s fleet.Stream, data []byte) error { return b.attempt.Output(s, data) }
func (b beside) Banner() string                           { return b.shell.Banner() }

// enter begins a task, unless the shell is gone.
func (r *remote) enter(a fleet.Attempt) (t *task, gone string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone != "" {
		return nil, "its shell has ended: " + r.gone
	}
	r.task = newTask(a)
	r.came.Broadcast()
	return r.task, ""
}

// leaveTask ends the task: what comes now waits for the next one.
func (r *remote) leaveTask() {
	r.mu.Lock()
	t := r.task
	r.task = nil
	r.mu.Unlock()
	t.mu.Lock()
	t.attempt = nil
	t.mu.Unlock()
}

// leave ends the tasks: there will be no further one. The first reason counts.
func (r *remote) leave(why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gone = cmp.Or(r.gone, why, errEnded.Error())
	r.came.Broadcast()
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// take takes what comes on a stream. Output waits for the next task if there is none: of jobs in
// the background, which then wait, too.
func (r *remote) take(s fleet.Stream, data []byte) {
	for len(data) > 0 {
		out, w, rest := r.streams[s].next(data)
		if len(out) > 0 {
			t := r.await(s)
			if t == nil {
				return
			}
			t.output(s, out)
		}
		if w != nil {
			r.hear(s, *w)
		}
		data = rest
	}
}

// await waits for the task that the next output of a stream belongs to; nil if there is none.
func (r *remote) await(s fleet.Stream) *task {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		switch {
		case r.task != nil && !r.task.done[s]:
			return r.task
		case r.gone != "":
			return nil
		}
		r.came.Wait()
	}
}

// hear takes a word of the driver or of the shell.
func (r *remote) hear(s fleet.Stream, w word) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.died {
		if r.died[s] = true; r.died[fleet.Stdout] && r.died[fleet.Stderr] {
			r.gone = cmp.Or(r.gone, fmt.Sprintf("exit %d", w.exit))
			go r.channel.Close() // its driver waits for more lines
		}
	}
	if !w.began {
		r.directory = w.directory
	}
	t := r.task
	switch {
	case t == nil || t.done[s]:
	case w.began:
		t.began[s] = true
	case t.began[s] || w.died: // otherwise it is a trace that mksh shows
		t.done[s], t.exit, t.died = true, w.exit, w.died
		if t.done[fleet.Stdout] && t.done[fleet.Stderr] {
			close(t.ended)
		}
	}
}

// output passes on output.
func (t *task) output(s fleet.Stream, data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.attempt != nil {
		t.attempt.Output(s, data) // an error is about to end the line
		return
	}
	t.said = append(t.said, data...)
	t.said = t.said[max(0, len(t.said)-idleBuffer):]
}
