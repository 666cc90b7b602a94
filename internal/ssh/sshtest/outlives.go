package sshtest

import (
	"context"
	"fmt"
	"io"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// Given runs commands over a connection that is not its own; starting is the time for their start.
type Given func(ctx, starting context.Context, cmd fleet.Command, a fleet.Attempt) fleet.Outcome

// FDs is 0: the connection is there.
func (Given) FDs() int { return 0 }

// Execute runs cmd on the connection, whatever the host.
func (g Given) Execute(ctx context.Context, _ host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	starting, cancel := context.WithTimeoutCause(ctx, fleet.ConnectTimeout, fleet.ErrConnectTimeout)
	defer cancel()
	return g(ctx, starting, cmd, a)
}

// Outlives makes sure that a connection, which ends with done, outlives all that runs on it: what
// ends well, what is ended, and what the server refuses, which has a subsystem echo. run runs a
// command on the connection until drain ends; refused: the server refuses all commands.
func Outlives(t *testing.T, done <-chan struct{}, refused bool, run func(drain context.Context, cmd fleet.Command) fleet.Result) {
	t.Helper()
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
		case <-done:
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
	echo := func(_ context.Context, _ host.Host, c fleet.Channel) error {
		if err := all(); err != nil { // beside this channel
			return err
		}
		if _, err := io.WriteString(c, "hello"); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 5))
		return err
	}
	if r := run(t.Context(), fleet.Command{Line: "echo", Dialogue: echo}); r.Status() != fleet.OK {
		t.Errorf("%+v", r)
	}
}
