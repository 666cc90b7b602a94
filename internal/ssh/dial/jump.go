package dial

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
)

// jumps keeps one connection to every jump host and opens a channel on it for
// each target behind it.
type jumps struct {
	mu    sync.Mutex
	conns map[jumpKey]*jump
	ended bool
}

// jump is a connection to a jump host: made, being made, or failed.
type jump struct {
	ready  chan struct{} // closed when client or err is set
	client *ssh.Client
	err    *Error
	until  time.Time // a failure is remembered until then
}

// failureMemory is how long a jump host that failed is not tried again: the
// hosts behind it shall fail at once, not one timeout after the other.
const failureMemory = 30 * time.Second

// dialThrough opens a connection to t on its jump host's connection.
func (e *Engine) dialThrough(ctx context.Context, t *Target) (net.Conn, error) {
	j, err := e.jump(ctx, t.Jump)
	if err != nil {
		return nil, err
	}
	c, derr := j.client.DialContext(ctx, "tcp", t.addr())
	if derr == nil {
		return c, nil
	}
	return nil, throughError(ctx, t, derr)
}

// throughError classifies a jump host's refusal (RFC 4254 section 5.1).
func throughError(ctx context.Context, t *Target, err error) *Error {
	where := "connect to host " + t.HostName + " port " + strconv.Itoa(t.port()) + " through " + t.Jump.HostName + ": "
	var open *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout):
		return &Error{Class: fleet.TimedOut, Text: where + "Connection timed out", Err: err}
	case ctx.Err() != nil:
		return interrupted(ctx)
	case !errors.As(err, &open):
		return &Error{Class: fleet.Lost, Text: where + "the jump host's connection ended", SlowDown: true, Err: err}
	}
	cause := openssh.NotForwarded(open.Message)
	switch open.Reason {
	case ssh.Prohibited:
		cause = openssh.Prohibited
	case ssh.ResourceShortage:
		cause = openssh.Throttled
	}
	e := because(cause, where+open.Message, err)
	e.SlowDown = e.Class == fleet.Throttled
	return e
}

// jump returns the connection to a jump host, making it when there is none.
func (e *Engine) jump(ctx context.Context, t *Target) (*jump, error) {
	key := t.jumpKey()
	e.jumps.mu.Lock()
	j := e.jumps.conns[key]
	if j == nil || j.expired() {
		if e.jumps.ended {
			e.jumps.mu.Unlock()
			return nil, &Error{Class: fleet.Cancelled, Text: "interrupted"}
		}
		j = &jump{ready: make(chan struct{})}
		e.jumps.conns[key] = j
		go e.makeJump(j, key, t)
	}
	e.jumps.mu.Unlock()
	select {
	case <-j.ready:
	case <-ctx.Done():
		return nil, timedOutOn(ctx, t)
	}
	if j.err != nil {
		return nil, j.err
	}
	return j, nil
}

func timedOutOn(ctx context.Context, t *Target) *Error {
	if errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout) {
		return &Error{Class: fleet.TimedOut, Text: "jump host " + t.HostName + ": Connection timed out"}
	}
	return interrupted(ctx)
}

// expired tells whether a failure may be tried again. The caller holds jumps.mu.
func (j *jump) expired() bool {
	select {
	case <-j.ready:
		return j.err != nil && time.Now().After(j.until)
	default:
		return false
	}
}

// makeJump connects with a context of its own: the host that came first may
// give up while others wait.
func (e *Engine) makeJump(j *jump, key jumpKey, t *Target) {
	client, stop, err := e.jumpClient(t)
	if err != nil {
		own := *asError(e.life, err)
		own.Text = "jump host " + t.HostName + ": " + own.Text
		j.err, j.until = &own, time.Now().Add(failureMemory)
		if own.SlowDown {
			j.until = time.Now()
		}
		close(j.ready)
		return
	}
	j.client = client
	close(j.ready)

	j.client.Wait()
	stop()
	e.jumps.forget(key, j)
}

// jumpClient is a connection to a jump host: one that there is, or our own.
func (e *Engine) jumpClient(t *Target) (client *ssh.Client, stop func(), err error) {
	if t.Shared != nil {
		if client := t.Shared(e.life); client != nil {
			return client, func() {}, nil
		}
	}
	link, err := e.connect(e.life, t, unobserved{}, nil)
	if err != nil {
		return nil, nil, err
	}
	return link.Client(), link.keepAlive(t).stop, nil
}

// forget makes the next host connect anew.
func (p *jumps) forget(key jumpKey, j *jump) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conns[key] == j {
		delete(p.conns, key)
	}
}

// close ends all connections.
func (p *jumps) close() {
	p.mu.Lock()
	p.ended = true
	var all []*jump
	for _, j := range p.conns {
		all = append(all, j)
	}
	p.mu.Unlock()
	for _, j := range all {
		<-j.ready
		if j.client != nil {
			j.client.Close()
			j.client.Wait()
		}
	}
}
