package dial

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/channel"
)

// signer is a key that can sign for a login.
type signer interface {
	PublicKey() ssh.PublicKey
	sign(l *login, data []byte, algorithm string) (*ssh.Signature, error)
}

// agents keeps one connection per agent socket for the whole run. Requests of all hosts are
// pipelined on it; a thousand connections would only meet the agent's listen backlog and its limit
// of open files.
type agents struct {
	warn func(text ...string)
	life context.Context // of the connections
	mu   sync.Mutex
	open map[string]*agentConn
}

// agentConn is one agent, connected and asked for its keys on first use.
type agentConn struct {
	socket string
	keys   sched.Together[holding]
	// tied holds the keys that are for some hosts only (ssh-add -h): with them the agent signs only
	// on a connection that was bound to such a host.
	tied sched.Together[map[string]bool]
	lost atomic.Bool // a request failed; connect anew for the next host
	life context.Context
	end  context.CancelFunc
}

// holding is the content of an agent.
type holding struct {
	keys    []*agentKey
	foreign []string // types of other keys, which only ssh knows
}

const (
	// agentListTimeout bounds connecting and the list of keys; a shorter connect timeout does, too.
	agentListTimeout = 5 * time.Second
	// agentSignTimeout bounds one signature: some agents ask a person.
	agentSignTimeout = 60 * time.Second
)

func newAgents(life context.Context, warn func(text ...string)) *agents {
	if warn == nil {
		warn = func(...string) {}
	}
	return &agents{warn: warn, life: life, open: make(map[string]*agentConn)}
}

// keysOf returns the keys of the agent at socket, asking it once, for the first host that wants
// them, and waiting no longer than that host does for its server.
func (a *agents) keysOf(ctx context.Context, socket string, timeout time.Duration) (holding, error) {
	if socket == "" {
		return holding{}, nil
	}
	a.mu.Lock()
	c := a.open[socket]
	if c == nil || c.lost.Load() {
		c = &agentConn{socket: socket}
		c.life, c.end = context.WithCancel(a.life)
		c.keys.Find = func(ctx context.Context) (holding, error) {
			held, err := a.connect(ctx, c, min(agentListTimeout, timeout))
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("agent at %s: %w", socket, err)
			}
			return held, err
		}
		a.open[socket] = c
	}
	a.mu.Unlock()
	return c.keys.Get(ctx)
}

// forget ends the connections to agents.
func (a *agents) forget() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for socket, c := range a.open {
		c.end()
		delete(a.open, socket)
	}
}

// connect asks an agent for its keys, as long as anybody waits for them and at most limit.
func (a *agents) connect(ctx context.Context, c *agentConn, limit time.Duration) (held holding, err error) {
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	shared, err := c.open(asking, nil)
	switch {
	case ctx.Err() != nil:
		return held, ctx.Err()
	case asking.Err() != nil:
		a.warn(fmt.Sprintf("agent at %s: no answer within %v; its keys are not used", c.socket, limit))
		return held, fmt.Errorf("no answer within %v", limit)
	case err != nil:
		return held, err
	}
	context.AfterFunc(c.life, func() { shared.conn.Close() })
	for _, k := range shared.list {
		// ssh.ParsePublicKey once here instead of x/crypto's Marshal per signature.
		if pub, err := ssh.ParsePublicKey(k.Blob); err == nil {
			held.keys = append(held.keys, &agentKey{agent: c, client: shared.client, pub: pub})
		} else {
			held.foreign = append(held.foreign, k.Format)
		}
	}
	c.tied.Find = func(ctx context.Context) (map[string]bool, error) { return c.findTied(ctx, held.keys) }
	if len(held.keys) > 0 {
		go func() { _, _ = c.tied.Get(c.life) }() // while the first server answers
	}
	return held, nil
}

// asked is a connection to an agent, and the keys that it has for it.
type asked struct {
	conn   net.Conn
	client agent.ExtendedAgent
	list   []*agent.Key
}

// open connects, and binds the connection to a host first if requested.
func (c *agentConn) open(ctx context.Context, binding []byte) (*asked, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, err
	}
	talking := context.AfterFunc(ctx, func() { conn.Close() })
	to := &asked{conn: conn, client: agent.NewClient(conn)}
	if binding != nil {
		_, err = to.client.Extension("session-bind@openssh.com", binding)
	}
	if err == nil {
		to.list, err = to.client.List()
	}
	if !talking() {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return to, nil
}

// findTied asks for the keys once more, as if for a host that nobody knows. An agent without such a
// binding has no tied keys.
func (c *agentConn) findTied(ctx context.Context, keys []*agentKey) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, agentListTimeout)
	defer cancel()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	stranger, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	session := public // any text
	proof, err := stranger.Sign(rand.Reader, session)
	if err != nil {
		return nil, err
	}
	nobody, err := c.open(ctx, channel.AppendBool(channel.Text(string(stranger.PublicKey().Marshal()), string(session), string(ssh.Marshal(proof))), false))
	if err != nil {
		return nil, nil
	}
	defer nobody.conn.Close()
	tied := map[string]bool{}
	for _, k := range keys {
		if blob := k.pub.Marshal(); !nobody.has(blob) {
			tied[string(blob)] = true
		}
	}
	return tied, nil
}

func (a *asked) has(blob []byte) bool {
	return slices.ContainsFunc(a.list, func(k *agent.Key) bool { return bytes.Equal(k.Blob, blob) })
}

// agentKey is a key that the agent holds.
type agentKey struct {
	agent  *agentConn
	client agent.ExtendedAgent
	pub    ssh.PublicKey
}

func (k *agentKey) PublicKey() ssh.PublicKey { return k.pub }

// agentKeyOf returns the key of an agent that signs for k, nil for none.
func agentKeyOf(k signer) *agentKey {
	if cert, ok := k.(*certKey); ok {
		k = cert.key
	}
	held, _ := k.(*agentKey)
	return held
}

// isTied reports whether the key is for some hosts only.
func (k *agentKey) isTied(ctx context.Context) bool {
	tied, _ := k.agent.tied.Get(ctx)
	return len(tied) > 0 && tied[string(k.pub.Marshal())]
}

// flags of RSA signatures by algorithm (draft-ietf-sshm-ssh-agent section 3.6.1).
var agentFlags = map[string]agent.SignatureFlags{
	ssh.KeyAlgoRSASHA256: agent.SignatureFlagRsaSha256,
	ssh.KeyAlgoRSASHA512: agent.SignatureFlagRsaSha512,
}

// sign asks the agent, and waits no longer than the login and agentSignTimeout.
func (k *agentKey) sign(l *login, data []byte, algorithm string) (*ssh.Signature, error) {
	ctx, end := context.WithTimeoutCause(l.ctx, agentSignTimeout, fmt.Errorf("agent at %s: no signature within %v", k.agent.socket, agentSignTimeout))
	defer end()
	client, shared := k.client, true
	if k.isTied(ctx) {
		client, shared = l.bound.client, false
	}
	return sched.Await(ctx, func() (*ssh.Signature, error) {
		sig, err := client.SignWithFlags(k.pub, data, agentFlags[algorithm])
		if err != nil {
			k.agent.lost.Store(shared || k.agent.lost.Load())
			err = fmt.Errorf("agent at %s: %w", k.agent.socket, err)
		}
		return sig, err
	})
}
