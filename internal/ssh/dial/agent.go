package dial

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// signer is a key that can sign for a login.
type signer interface {
	PublicKey() ssh.PublicKey
	sign(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error)
}

// agents keeps one connection per agent socket for the whole run. Requests of
// all hosts are pipelined on it; a thousand connections would only meet the
// agent's listen backlog and its limit of open files.
type agents struct {
	warn func(text ...string)
	mu   sync.Mutex
	open map[string]*agentConn
}

// agentConn is one agent, connected and asked for its keys on first use.
type agentConn struct {
	socket string
	limit  time.Duration // for connecting and the list of keys
	once   sync.Once
	conn   net.Conn
	client agent.ExtendedAgent
	keys   []*agentKey
	err    error
	lost   atomic.Bool // a request failed; connect anew for the next host
}

const (
	// agentListTimeout bounds connecting and the list of keys; a shorter connect
	// timeout does, too.
	agentListTimeout = 5 * time.Second
	// agentSignTimeout bounds one signature: some agents ask a person.
	agentSignTimeout = 60 * time.Second
)

func newAgents(warn func(text ...string)) *agents {
	if warn == nil {
		warn = func(...string) {}
	}
	return &agents{warn: warn, open: make(map[string]*agentConn)}
}

// keysOf returns the keys of the agent at socket, asking it once, for the first
// host that wants them, and waiting no longer than that host does for its server.
func (a *agents) keysOf(socket string, patience time.Duration) ([]*agentKey, error) {
	if socket == "" {
		return nil, nil
	}
	a.mu.Lock()
	c := a.open[socket]
	if c == nil || c.lost.Load() {
		c = &agentConn{socket: socket, limit: min(agentListTimeout, patience)}
		a.open[socket] = c
	}
	a.mu.Unlock()
	c.once.Do(func() { c.connect(a.warn) })
	return c.keys, c.err
}

func (a *agents) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.open {
		c.once.Do(func() { c.err = net.ErrClosed })
		if c.conn != nil {
			c.conn.Close()
		}
	}
}

func (c *agentConn) connect(warn func(text ...string)) {
	c.conn, c.err = net.DialTimeout("unix", c.socket, c.limit)
	if c.err != nil {
		c.err = fmt.Errorf("agent at %s: %w", c.socket, c.err)
		return
	}
	c.client = agent.NewClient(c.conn)
	silent := time.AfterFunc(c.limit, func() { c.conn.Close() })
	list, err := c.client.List()
	if !silent.Stop() {
		c.err = fmt.Errorf("agent at %s: no answer within %v", c.socket, c.limit)
		warn(c.err.Error() + "; its keys are not used")
		return
	}
	if err != nil {
		c.err = fmt.Errorf("agent at %s: %w", c.socket, err)
		return
	}
	for _, k := range list {
		// ssh.ParsePublicKey once here instead of x/crypto's Marshal per signature.
		if pub, err := ssh.ParsePublicKey(k.Blob); err == nil {
			c.keys = append(c.keys, &agentKey{agent: c, pub: pub})
		}
	}
}

// agentKey is a key that the agent holds.
type agentKey struct {
	agent *agentConn
	pub   ssh.PublicKey
}

func (k *agentKey) PublicKey() ssh.PublicKey { return k.pub }

// flags of RSA signatures by algorithm (draft-ietf-sshm-ssh-agent section 3.6.1).
var agentFlags = map[string]agent.SignatureFlags{
	ssh.KeyAlgoRSASHA256: agent.SignatureFlagRsaSha256,
	ssh.KeyAlgoRSASHA512: agent.SignatureFlagRsaSha512,
}

// sign asks the agent, and waits no longer than ctx and agentSignTimeout.
func (k *agentKey) sign(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
	type reply struct {
		sig *ssh.Signature
		err error
	}
	got := make(chan reply, 1)
	go func() {
		sig, err := k.agent.client.SignWithFlags(k.pub, data, agentFlags[algorithm])
		got <- reply{sig, err}
	}()
	late := time.NewTimer(agentSignTimeout)
	defer late.Stop()
	select {
	case r := <-got:
		if r.err != nil {
			k.agent.lost.Store(true)
			return nil, fmt.Errorf("agent at %s: %w", k.agent.socket, r.err)
		}
		return r.sig, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-late.C:
		return nil, fmt.Errorf("agent at %s: no signature within %v", k.agent.socket, agentSignTimeout)
	}
}
