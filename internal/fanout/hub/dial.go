package hub

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nkeys"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fanout/job"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/safedir"
)

// Dial connects to a hub.
func (NATS) Dial(ctx context.Context, a job.Address) (job.Bus, error) {
	if err := a.Role.Check(); err != nil {
		return nil, err
	}
	return asBus(dial(ctx, a, way(a)))
}

// asBus returns no Bus with an error: a pointer that is nil would be one.
func asBus(b *bus, err error) (job.Bus, error) {
	if err != nil {
		return nil, err
	}
	return b, nil
}

// An opener opens a connection, and returns the credential for it.
type opener func(context.Context) (net.Conn, credential, error)

// way returns how connections to an address are opened; nil leaves it to the library.
func way(a job.Address) opener {
	switch {
	case a.Dir != "":
		return func(ctx context.Context) (net.Conn, credential, error) { return local(ctx, a.Dir, a.Role) }
	case a.Open != nil:
		return func(ctx context.Context) (net.Conn, credential, error) { return greeted(ctx, a) }
	case !a.Cluster:
		return func(ctx context.Context) (net.Conn, credential, error) { return remote(ctx, a) }
	}
	return nil
}

// local opens a connection by the socket of this machine, with a new credential.
func local(ctx context.Context, directory string, r job.Role) (conn net.Conn, c credential, err error) {
	dir, err := safedir.Open(directory)
	if err != nil {
		return nil, c, fault.WithHint(err, "start the hub: sshpace hub, or name its directory by --dir")
	}
	defer dir.Close()
	path := filepath.Join(dir.Path(), socketName)
	if conn, err = (&net.Dialer{}).DialContext(ctx, "unix", path); err != nil {
		return nil, c, fault.WithHint(fmt.Errorf("no hub listens at %s: %w", path, plain(err)), "start the hub: sshpace hub")
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
}

// greeting is the line that Connect begins with.
type greeting struct {
	Role job.Role `json:"role"`
	credential
}

// longestGreeting bounds it, in bytes.
const longestGreeting = 16 << 10

// Connect connects in and out to the hub of a directory.
func (NATS) Connect(ctx context.Context, directory string, r job.Role, in io.Reader, out io.Writer) error {
	conn, c, err := local(ctx, directory, r)
	if err != nil {
		return err
	}
	defer conn.Close()
	line, err := json.Marshal(greeting{r, c})
	if err == nil {
		_, err = fmt.Fprintf(out, "%s\n", line)
	}
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, in)
		conn.Close()
	}()
	_, err = io.Copy(out, conn)
	if errors.Is(err, net.ErrClosed) { // by the other side
		return nil
	}
	return err
}

// greeted opens a connection to a Connect, and reads its greeting.
func greeted(ctx context.Context, a job.Address) (conn net.Conn, c credential, err error) {
	if conn, err = a.Open(ctx); err != nil {
		return nil, c, err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r := bufio.NewReader(io.LimitReader(conn, longestGreeting))
	line, err := r.ReadBytes('\n')
	var g greeting
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("the hub's machine ends the connection")
	case err != nil:
	case json.Unmarshal(line, &g) != nil || g.Token == "":
		err = fault.WithHint(fmt.Errorf("the hub's machine answers %.80q", line), "it has to run sshpace hub --connect, and print nothing before")
	case g.Role != a.Role:
		err = fault.WithHint(fmt.Errorf("the hub's machine permits the role %q, not %q", g.Role, a.Role), "see authorized_keys there")
	}
	if err != nil {
		conn.Close()
		return nil, c, err
	}
	return &readAgain{conn, io.MultiReader(io.LimitReader(r, int64(r.Buffered())), conn)}, g.credential, nil
}

// readAgain is a connection of which some bytes were read ahead.
type readAgain struct {
	net.Conn
	r io.Reader
}

func (c *readAgain) Read(p []byte) (int, error) { return c.r.Read(p) }

// remote opens a connection to a hub that listens, by TLS unless it is on this machine.
func remote(ctx context.Context, a job.Address) (conn net.Conn, c credential, err error) {
	at, err := url.Parse(a.URL)
	if err != nil {
		return nil, c, err
	}
	if c, err = readCredential(a.Credential, a.Role); err != nil {
		return nil, c, err
	}
	if at.Scheme != "tls" {
		if !loopback(at.Host) {
			return nil, c, fault.Usage("write tls://"+at.Host, "%s is on another machine", a.URL)
		}
		conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", at.Host)
		return conn, c, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13}
	if a.Roots != "" {
		roots, err := file.ReadFile(a.Roots, 1<<20)
		if err != nil {
			return nil, c, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(roots) {
			return nil, c, fmt.Errorf("%s has no certificate", a.Roots)
		}
	}
	conn, err = (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", at.Host)
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		err = fault.WithHint(err, "if the hub has a certificate of your own, name it by --tls-ca")
	}
	return conn, c, err
}

// loopback reports whether HOST:PORT is on this machine.
func loopback(at string) bool {
	name, _, err := net.SplitHostPort(at)
	return err == nil && host.Loopback(name)
}

// readCredential reads a .creds file of a role.
func readCredential(path string, r job.Role) (c credential, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return c, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return c, fault.WithHint(fmt.Errorf("%s is open to others", path), "chmod 600 "+path)
	}
	text, err := file.ReadFile(path, longestGreeting)
	if err != nil {
		return c, err
	}
	pair, seedErr := jwt.ParseDecoratedUserNKey(text)
	c.Token, err = jwt.ParseDecoratedJWT(text)
	if err = errors.Join(seedErr, err); err != nil {
		return c, fault.WithHint(fmt.Errorf("%s is not a credential", path), "sshpace hub --credential makes one")
	}
	claims, err := jwt.DecodeUserClaims(c.Token)
	switch {
	case err != nil:
		return c, fmt.Errorf("%s: %w", path, err)
	case job.Role(claims.Name) != r:
		return c, fault.WithHint(fmt.Errorf("%s is for the role %q, not %q", path, claims.Name, r), "sshpace hub --credential "+string(r)+" makes one")
	case claims.Expires != 0 && time.Now().Unix() >= claims.Expires:
		return c, fault.WithHint(fmt.Errorf("%s has expired on %s", path, time.Unix(claims.Expires, 0).Format(time.DateTime)), "sshpace hub --credential "+string(r)+" makes a new one")
	}
	seed, err := pair.Seed()
	c.Seed = string(seed)
	return c, err
}

// dialTime bounds one connection: another machine's ssh may ask for a while.
const dialTime = time.Minute

// pingEvery is how often both sides ask whether the other one lives: a connection is lost after
// three times that.
const pingEvery = 10 * time.Second

// dial connects to a hub, and does so again whenever the connection is lost.
func dial(ctx context.Context, a job.Address, open opener) (*bus, error) {
	b := &bus{epoch: make(chan struct{}), tries: map[*attempt]context.CancelCauseFunc{}}
	d := &dialer{open: open, tell: a.Away, ctx: context.WithoutCancel(ctx)}
	at, options := "nats://hub", []nats.Option{nats.SetCustomDialer(d), nats.SkipHostLookup(), nats.UserJWT(d.token, d.sign)}
	if open == nil {
		at, options = a.URL, []nats.Option{nats.UserCredentials(a.Credential)}
		if a.Roots != "" {
			options = append(options, nats.RootCAs(a.Roots))
		}
	}
	var err error
	b.nc, err = nats.Connect(at, append(options,
		nats.Name("sshpace "+string(a.Role)), nats.CustomInboxPrefix(inbox(a.Role)), nats.Timeout(dialTime), nats.PingInterval(pingEvery), nats.MaxPingsOutstanding(2),
		nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(), nats.ReconnectBufSize(-1), nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectHandler(func(*nats.Conn) { b.connected(); d.say(nil) }),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { d.say(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { d.say(err) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) {
				b.refused(err)
			}
		}))...)
	if errors.Is(err, nats.ErrNoServers) && open == nil {
		err = fmt.Errorf("no server answers at %s", a.URL)
	}
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
	open opener
	tell func(error) // see job.Address.Away
	ctx  context.Context

	mu   sync.Mutex
	last credential // of the last connection
	err  error      // why it could not be opened
	away bool
}

// Dial opens a connection. The address means nothing.
func (d *dialer) Dial(string, string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(d.ctx, dialTime)
	defer cancel()
	conn, c, err := d.open(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last, d.err = c, err
	return conn, err
}

func (d *dialer) token() (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last.Token, nil
}

func (d *dialer) sign(nonce []byte) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	pair, err := nkeys.FromSeed([]byte(d.last.Seed))
	if err != nil {
		return nil, err
	}
	return pair.Sign(nonce)
}

// why returns the reason that a connection could not be opened.
func (d *dialer) why(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	for _, kind := range []error{nats.ErrAuthorization, nats.ErrAuthExpired, nats.ErrAuthRevoked, nats.ErrAccountAuthExpired} {
		if errors.Is(err, kind) {
			return fault.WithHint(fmt.Errorf("%w: it does not know the credential, or that has expired", job.ErrRefused),
				"sshpace hub --credential makes a new one, on the hub's machine")
		}
	}
	return err
}

// say tells once that the hub is away, and once that it is back.
func (d *dialer) say(err error) {
	if err != nil {
		err = d.why(err)
	}
	d.mu.Lock()
	changed := d.away != (err != nil)
	d.away = err != nil
	d.mu.Unlock()
	if changed && d.tell != nil {
		d.tell(err)
	}
}
