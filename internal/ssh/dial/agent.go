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

	"sshpace/internal/base/sched"
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
	life context.Context // of the connections
	mu   sync.Mutex
	open map[string]*agentConn
}

// agentConn is one agent, connected and asked for its keys on first use.
type agentConn struct {
	keys sched.Together[[]*agentKey]
	lost atomic.Bool // a request failed; connect anew for the next host
}

const (
	// agentListTimeout bounds connecting and the list of keys; a shorter connect
	// timeout does, too.
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

// keysOf returns the keys of the agent at socket, asking it once, for the first
// host that wants them, and waiting no longer than that host does for its server.
func (a *agents) keysOf(ctx context.Context, socket string, patience time.Duration) ([]*agentKey, error) {
	if socket == "" {
		return nil, nil
	}
	a.mu.Lock()
	c := a.open[socket]
	if c == nil || c.lost.Load() {
		c = &agentConn{}
		c.keys.Find = func(ctx context.Context) ([]*agentKey, error) {
			keys, err := a.connect(ctx, c, socket, min(agentListTimeout, patience))
			if err != nil && ctx.Err() == nil {
				err = fmt.Errorf("agent at %s: %w", socket, err)
			}
			return keys, err
		}
		a.open[socket] = c
	}
	a.mu.Unlock()
	return c.keys.Get(ctx)
}

// connect asks an agent for its keys, as long as anybody waits for them and at most limit.
func (a *agents) connect(ctx context.Context, c *agentConn, socket string, limit time.Duration) ([]*agentKey, error) {
	asking, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(asking, "unix", socket)
	if err != nil {
		return nil, err
	}
	silent := context.AfterFunc(asking, func() { conn.Close() })
	client := agent.NewClient(conn)
	list, err := client.List()
	switch {
	case silent():
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		a.warn(fmt.Sprintf("agent at %s: no answer within %v; its keys are not used", socket, limit))
		return nil, fmt.Errorf("no answer within %v", limit)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	context.AfterFunc(a.life, func() { conn.Close() })
	var keys []*agentKey
	for _, k := range list {
		// ssh.ParsePublicKey once here instead of x/crypto's Marshal per signature.
		if pub, err := ssh.ParsePublicKey(k.Blob); err == nil {
			keys = append(keys, &agentKey{agent: c, socket: socket, client: client, pub: pub})
		}
	}
	return keys, nil
}

// agentKey is a key that the agent holds.
type agentKey struct {
	agent  *agentConn
	socket string
	client agent.ExtendedAgent
	pub    ssh.PublicKey
}

func (k *agentKey) PublicKey() ssh.PublicKey { return k.pub }

// flags of RSA signatures by algorithm (draft-ietf-sshm-ssh-agent section 3.6.1).
var agentFlags = map[string]agent.SignatureFlags{
	ssh.KeyAlgoRSASHA256: agent.SignatureFlagRsaSha256,
	ssh.KeyAlgoRSASHA512: agent.SignatureFlagRsaSha512,
}

// sign asks the agent, and waits no longer than ctx and agentSignTimeout.
func (k *agentKey) sign(ctx context.Context, data []byte, algorithm string) (*ssh.Signature, error) {
	ctx, end := context.WithTimeoutCause(ctx, agentSignTimeout, fmt.Errorf("agent at %s: no signature within %v", k.socket, agentSignTimeout))
	defer end()
	return sched.Await(ctx, func() (*ssh.Signature, error) {
		sig, err := k.client.SignWithFlags(k.pub, data, agentFlags[algorithm])
		if err != nil {
			k.agent.lost.Store(true)
			err = fmt.Errorf("agent at %s: %w", k.socket, err)
		}
		return sig, err
	})
}
