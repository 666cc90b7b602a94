// Package shell gives command lines to shells that stay: each host has one POSIX shell for one run
// after another, whatever its login shell is, so that cd, export and functions last.
//
// A line never runs in another shell than the one before it. A shell that has ended, by itself or
// with its connection, is begun anew after Forget, and not by a line.
package shell

import (
	"context"
	"strings"
	"sync"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// Executor runs each command in the shell of its host, which the first one begins.
type Executor struct {
	fleet.Executor // makes the connections
	life           context.Context
	end            context.CancelFunc
	living         sync.WaitGroup

	mu     sync.Mutex
	shells map[host.Endpoint]*remote
}

// New makes an Executor. The caller closes it.
func New(under fleet.Executor) *Executor {
	e := &Executor{Executor: under, shells: map[host.Endpoint]*remote{}}
	e.life, e.end = context.WithCancel(context.Background())
	return e
}

// Close ends all shells.
func (e *Executor) Close() {
	e.end()
	e.living.Wait()
}

// State is the state of the shell of a host.
type State struct {
	Directory string // its working directory, as the shell names it
	Ended     string // why it has ended, "" while it lives
}

// State returns the state of the shell of a host; false if it has none.
func (e *Executor) State(h host.Host) (State, bool) {
	e.mu.Lock()
	r := e.shells[h.Endpoint()]
	e.mu.Unlock()
	if r == nil {
		return State{}, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return State{r.directory, r.gone}, true
}

// Forget ends the shell of a host. The next line there begins another one.
func (e *Executor) Forget(h host.Host) {
	e.mu.Lock()
	r := e.shells[h.Endpoint()]
	delete(e.shells, h.Endpoint())
	e.mu.Unlock()
	if r != nil {
		r.end(context.Canceled)
	}
}

const engineName = "shell"

// nothing is the outcome of a line that did not run.
func nothing(class fleet.Class, why string) fleet.Outcome {
	return fleet.Outcome{Engine: engineName, Exit: -1, Class: class, Err: why}
}

// Execute runs cmd in the shell of h, or holds a Dialogue over the same connection.
func (e *Executor) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	if strings.ContainsAny(cmd.Line, "\n\x00") || cmd.Input != nil {
		return nothing(fleet.Local, "such a line cannot be given to a shell: it has a zero byte, an end of line, or values that need the standard input")
	}
	r, failed := e.shell(ctx, h, a)
	switch {
	case failed != nil:
		return *failed
	case cmd.Dialogue != nil:
		return r.converse(ctx, e.Executor, h, cmd, a)
	}
	return r.run(ctx, cmd.Line, a)
}

// shell returns the shell of a host, or why there is none.
func (e *Executor) shell(ctx context.Context, h host.Host, a fleet.Attempt) (*remote, *fleet.Outcome) {
	e.mu.Lock()
	r := e.shells[h.Endpoint()]
	if r != nil {
		e.mu.Unlock()
		return r, nil
	}
	r = newRemote(e.life, a)
	e.shells[h.Endpoint()] = r
	e.mu.Unlock()
	e.living.Go(func() { r.live(e.Executor, h) })
	if failed := r.begin(ctx); failed != nil {
		e.Forget(h)
		return nil, failed
	}
	return r, nil
}
