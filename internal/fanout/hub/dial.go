package hub

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"sshpace/internal/fanout/job"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/sys/safedir"
)

// Address is a hub, and who is there.
type Address struct {
	Role Role
	// Away is told once that the hub is away, with the reason, and once that it is back, with nil.
	Away func(err error)

	// open opens a connection, with the credential for it.
	open func(context.Context) (net.Conn, Credential, error)
}

// Local returns the hub of this machine with a directory, by its socket.
func Local(directory string, r Role) Address {
	return Address{Role: r, open: func(ctx context.Context) (conn net.Conn, c Credential, err error) {
		dir, err := safedir.Open(directory)
		if err != nil {
			return nil, c, err
		}
		defer dir.Close()
		path := filepath.Join(dir.Path(), socketName)
		if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path); err != nil {
			return nil, c, fmt.Errorf("no hub listens at %s: %w", path, err)
		}
		if err = mux.CheckOwner(path, conn.(*net.UnixConn)); err == nil {
			var k keys
			if k, err = openKeys(dir, false); err == nil {
				c, err = k.credential(r, sessionTime)
			}
		}
		if err != nil {
			conn.Close()
			return nil, c, socketError(err)
		}
		return conn, c, nil
	}}
}

// Dial connects to a hub. It waits for nothing: the hub has to be there. Later it connects again
// without end.
func Dial(ctx context.Context, a Address) (job.Bus, error) {
	if err := a.Role.Check(); err != nil {
		return nil, err
	}
	return dial(ctx, a)
}

// dialTime bounds one connection: another machine's ssh may ask for a while.
const dialTime = time.Minute

// dial connects to a hub, and does so again whenever the connection is lost.
func dial(ctx context.Context, a Address) (*bus, error) {
	b := &bus{epoch: make(chan struct{}), tries: map[*attempt]context.CancelCauseFunc{}}
	d := &dialer{Address: a, ctx: context.WithoutCancel(ctx)}
	var err error
	b.nc, err = nats.Connect("nats://hub", append(d.options(),
		nats.Name("sshpace "+string(a.Role)), nats.CustomInboxPrefix(a.Role.inbox()), nats.Timeout(dialTime),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectHandler(func(*nats.Conn) { b.connected(); d.say(nil) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { d.say(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { d.say(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				b.refused(err)
			}
		}))...)
	if err == nil {
		b.js, err = jetstream.New(b.nc)
	}
	if err != nil {
		return nil, d.why(err)
	}
	return b, nil
}

// reconnectDelay is the pause after so many attempts.
func reconnectDelay(attempts int) time.Duration {
	return min(firstPause<<min(attempts, 10), longestPause)
}

// dialer opens the connections of a bus.
type dialer struct {
	Address
	ctx context.Context

	mu         sync.Mutex
	credential Credential // of the last connection
	err        error      // why it could not be opened
	away       bool
}

func (d *dialer) options() []nats.Option {
	return []nats.Option{nats.SetCustomDialer(d), nats.SkipHostLookup(), nats.UserJWT(d.token, d.sign)}
}

// Dial opens a connection. The address is a stand-in.
func (d *dialer) Dial(string, string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, dialTime)
	defer cancel()
	conn, c, err := d.open(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.credential, d.err = c, err
	return conn, err
}

func (d *dialer) token() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.credential.Token, nil
}

func (d *dialer) sign(nonce []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pair, err := nkeys.FromSeed([]byte(d.credential.Seed))
	if err != nil {
		return nil, err
	}
	return pair.Sign(nonce)
}

// why returns the reason that a connection could not be opened.
func (d *dialer) why(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.err != nil:
		return d.err
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired):
		return fmt.Errorf("%w: %w", job.ErrRefused, err)
	}
	return err
}

// say says once that the hub is away, and once that it is back.
func (d *dialer) say(err error) {
	if err != nil {
		err = d.why(err)
	}
	d.mu.Lock()
	changed := d.away != (err != nil)
	d.away = err != nil
	d.mu.Unlock()
	if changed && d.Away != nil {
		d.Away(err)
	}
}
