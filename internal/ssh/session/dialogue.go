package session

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
)

// conversation is a subsystem and its line for a Dialogue.
type conversation struct {
	line.Channel
	on      line.Line
	env     []string
	attempt fleet.Attempt
	banner  func() string
}

var _ fleet.Channel = conversation{}

// Converse holds the Dialogue of a command over its subsystem. It closes the line if the Dialogue
// does not end in time. banner returns the last line that the server has sent for people to read.
func Converse(ctx context.Context, on line.Line, ch line.Channel, cmd fleet.Command, a fleet.Attempt, banner func() string) error {
	defer sched.After(ctx, func() time.Duration { return fleet.DialogueGrace }, func() { on.Close() })()
	return cmd.Dialogue(ctx, a.Host(), conversation{ch, on, cmd.Env, a, banner})
}

// hold opens the subsystem and holds the Dialogue with it.
func (c *Connection) hold(ctx, starting context.Context, begun func() bool, cmd fleet.Command, a fleet.Attempt) (fleet.Outcome, error) {
	ch, requests, err := c.OpenChannel("session", nil)
	if err == nil {
		defer ch.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		return fleet.Outcome{}, c.notStarted(starting, err, false)
	}
	kind := line.Subsystem
	if cmd.Program {
		kind = line.Exec
	}
	err = grant(ch, line.Ask{Kind: kind, Text: cmd.Line, Env: cmd.Env})
	if err != nil || !begun() {
		return fleet.Outcome{}, c.notStarted(starting, cmp.Or(err, context.Cause(starting)), true)
	}
	a.Reached(fleet.PhaseExec)
	var stderr sync.WaitGroup
	stderr.Go(func() {
		io.CopyBuffer(fleet.Writer{Attempt: a, Stream: fleet.Stderr}, ch.Stderr(), make([]byte, idleBuffer))
	})
	err = Converse(ctx, cmp.Or[line.Line](c.Beside, c), &stream{ch, requests}, cmd, a, func() string { return c.Banner })
	ch.Close()
	stderr.Wait() // what has arrived may be why the Dialogue failed
	a.Reached(fleet.PhaseExit)
	o, lost := c.Result, ""
	o.Ran = fleet.RanYes
	if ctx.Err() == nil && err != nil {
		lost = c.Lost()
	}
	o.Conversed(ctx, err, lost)
	return o, nil
}

// idleBuffer is for waiting for standard error, which mostly is empty.
const idleBuffer = 512

// Output passes on the output of the Dialogue.
func (c conversation) Output(s fleet.Stream, data []byte) error { return c.attempt.Output(s, data) }

// Banner returns the last banner line of the connection.
func (c conversation) Banner() string { return c.banner() }

// Open opens another subsystem.
func (c conversation) Open(ctx context.Context, subsystem string) (io.ReadWriteCloser, error) {
	return c.openChannel(ctx, line.Subsystem, subsystem)
}

// openChannel opens another channel of the connection, next to the subsystem.
func (c conversation) openChannel(ctx context.Context, kind line.Kind, text string) (line.Channel, error) {
	ch, err := c.on.Open(ctx, line.Ask{Kind: kind, Text: text, Env: c.env})
	switch {
	case err == nil:
		return ch, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, fleet.ErrNoExec):
		return nil, err
	}
	return nil, fmt.Errorf("%w: %w", fleet.ErrNoExec, err)
}

// Exec runs a command in another session.
func (c conversation) Exec(ctx context.Context, text string, input io.Reader) ([]byte, error) {
	ch, err := c.openChannel(ctx, line.Exec, text)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { ch.Close() })()
	sent := feed(ch, io.NopCloser(input))
	defer sent()
	defer ch.Close() // ends the running transmission
	var out bytes.Buffer
	_, err = io.Copy(&out, io.LimitReader(ch, fleet.MaxExec+1))
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	exit := -1
	if ctx.Err() == nil && out.Len() <= fleet.MaxExec {
		exit = ch.Exit()
	}
	return fleet.Executed(ctx, out.Bytes(), exit)
}
