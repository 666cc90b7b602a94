// Package sessiontest has what the tests of several makers of connections share.
package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/session"
)

// Connection is one that commands run on; starting is the time for their start.
type Connection interface {
	Run(ctx, starting context.Context, cmd fleet.Command, a fleet.Attempt) (fleet.Outcome, error)
	Done() <-chan struct{}
}

// given runs commands over a connection that is not its own.
type given struct{ Connection }

// FDs is 0: the connection is there.
func (given) FDs() int { return 0 }

// Execute runs cmd on the connection, whatever the host.
func (g given) Execute(ctx context.Context, _ host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	starting, cancel := context.WithTimeoutCause(ctx, fleet.ConnectTimeout, fleet.ErrConnectTimeout)
	defer cancel()
	o, err := g.Run(ctx, starting, cmd, a)
	if failed, ok := errors.AsType[*session.NotStarted](err); ok {
		return failed.Outcome
	}
	return o
}

// Outlives makes sure that a connection outlives all that runs on it: what ends well, what is
// ended, and what the server refuses, which has a subsystem echo. with runs a command with an
// executor until drain ends; refused: the server refuses all commands.
func Outlives(t *testing.T, c Connection, refused bool, with func(drain context.Context, x fleet.Executor, cmd fleet.Command) fleet.Result) {
	t.Helper()
	run := func(drain context.Context, cmd fleet.Command) fleet.Result { return with(drain, given{c}, cmd) }
	command := func(line string, class fleet.Class, exit int, limit time.Duration) error {
		drain, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if refused {
			class, exit = fleet.ExecRefused, -1
		}
		r := run(drain, fleet.Command{Line: line})
		if r.Class != class || r.Exit != exit || refused && r.Ran != fleet.RanNo {
			return fmt.Errorf("%s: %+v", line, r)
		}
		select {
		case <-c.Done():
			return fmt.Errorf("%s: the connection has ended", line)
		default:
			return nil
		}
	}
	all := func() error {
		for range 2 {
			if err := command("exit 3", fleet.NoFailure, 3, time.Minute); err != nil {
				return err
			}
			if err := command("exec sleep 1000", fleet.Cancelled, -1, 300*time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	}
	if err := all(); err != nil {
		t.Error(err)
	}
	echo := func(_ context.Context, _ host.Host, ch fleet.Channel) error {
		if err := all(); err != nil { // beside this channel
			return err
		}
		if _, err := io.WriteString(ch, "hello"); err != nil {
			return err
		}
		_, err := io.ReadFull(ch, make([]byte, 5))
		return err
	}
	if r := run(t.Context(), fleet.Command{Line: "echo", Dialogue: echo}); r.Status() != fleet.OK {
		t.Errorf("%+v", r)
	}
}
