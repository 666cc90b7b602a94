package hub

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fanout/job"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/tcp"
)

// Server is a hub in this process, or the streams of a cluster.
type Server struct {
	params job.Serving
	dir    *safedir.Directory
	keys   keys
	bus    *bus
	doors  []net.Listener
	work   sync.WaitGroup // of doors, and of watch
	life   context.Context
	end    context.CancelFunc

	mu     sync.Mutex
	server *server.Server
	log    *serverLog
}

// socketName names the socket in the directory of a hub. It also keeps other hubs away.
const socketName = "socket"

// Serve starts a hub in this process, or makes the streams on a cluster.
func (NATS) Serve(ctx context.Context, p job.Serving) (job.Server, error) {
	p.Limits.Bytes = cmp.Or(p.Limits.Bytes, job.DefaultLimits.Bytes)
	p.Limits.Age = cmp.Or(p.Limits.Age, job.DefaultLimits.Age)
	p.Limits.Replicas = cmp.Or(p.Limits.Replicas, job.DefaultLimits.Replicas)
	s := &Server{params: p}
	s.life, s.end = context.WithCancel(context.WithoutCancel(ctx))
	begin := s.open
	if p.Cluster != nil {
		begin = s.useCluster
	}
	if err := begin(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// useCluster makes the streams on a cluster.
func (s *Server) useCluster(ctx context.Context) (err error) {
	if s.bus, err = dial(ctx, *s.params.Cluster, nil); err != nil {
		return err
	}
	return s.bus.prepare(ctx, s.params.Limits, false)
}

// open opens the directory, starts the server and lets users in.
func (s *Server) open(ctx context.Context) (err error) {
	if s.dir, err = safedir.Make(s.params.Dir); err != nil {
		return fault.WithHint(err, "name a directory of your own by --dir")
	}
	socket, err := mux.Listen(filepath.Join(s.dir.Path(), socketName))
	if err != nil {
		return socketError(err)
	}
	s.doors = append(s.doors, socket)
	if err := s.listen(); err != nil {
		return err
	}
	if s.keys, err = openKeys(s.dir, true); err != nil {
		return err
	}
	if err = s.start(ctx); err != nil {
		return err
	}
	if s.bus, err = s.connect(ctx, itself); err != nil {
		return err
	}
	if err = s.bus.prepare(ctx, s.params.Limits, false); err != nil {
		return err
	}
	s.work.Go(s.watch)
	for _, door := range s.doors {
		s.work.Go(func() { s.accept(door) })
	}
	return nil
}

// listen opens the port.
func (s *Server) listen() error {
	p := s.params
	if p.Listen == "" {
		return nil
	}
	var config *tls.Config
	if _, _, err := net.SplitHostPort(p.Listen); err != nil {
		return fault.Usage("such as --listen :4222", "%q is not ADDRESS:PORT", p.Listen)
	}
	switch {
	case p.Certificate != "":
		pair, err := tls.LoadX509KeyPair(p.Certificate, p.Key)
		if err != nil {
			return err
		}
		config = &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}}
	case !loopback(p.Listen):
		return fault.Usage("give --tls-cert and --tls-key, or let others come through ssh: --hub ssh://HOST", "%s is open to other machines", p.Listen)
	}
	l, err := net.Listen("tcp", p.Listen)
	if err != nil {
		return fault.WithHint(fmt.Errorf("%s: %w", p.Listen, plain(err)), "choose another address for --listen")
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	s.doors = append(s.doors, l)
	return nil
}

// plain returns the reason within an error of the network.
func plain(err error) error {
	if why, is := errors.AsType[syscall.Errno](err); is {
		return why
	}
	return err
}

// socketError returns an error of a socket in words about a hub.
func socketError(err error) error {
	var at *mux.Error
	switch {
	case errors.Is(err, mux.ErrLives):
		return fault.WithHint(errors.New("a hub runs with this directory already"), "end that one first, or name another directory by --dir")
	case errors.As(err, &at):
		return fault.WithHint(fmt.Errorf("the hub's socket %s %s", at.Path, at.Text), "name another directory by --dir")
	}
	return err
}

// readyIn is how long a hub may take to read what it keeps.
const readyIn = 10 * time.Minute

// start starts the server of NATS.
func (s *Server) start(ctx context.Context) error {
	o := &server.Options{
		ServerName: "sshpace", DontListen: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: filepath.Join(s.dir.Path(), "jetstream"), SyncAlways: true,
		PingInterval: pingEvery, MaxPingsOut: 2,
		// The limits are those of the streams.
		JetStreamMaxStore: math.MaxInt64 / 2, JetStreamMaxMemory: 256 << 20,
	}
	var revoked time.Time
	if info, err := s.dir.Stat(revokedFile); err == nil {
		revoked = info.ModTime().Add(-time.Second) // they have whole seconds, our own new one too
	}
	if err := s.keys.trust(o, revoked); err != nil {
		return err
	}
	made, err := server.NewServer(o)
	if err != nil {
		return err
	}
	log := &serverLog{log: s.params.Log}
	made.SetLoggerV2(log, false, false, false)
	made.Start()
	s.mu.Lock()
	s.server, s.log = made, log
	s.mu.Unlock()
	for deadline := time.Now().Add(readyIn); !made.ReadyForConnections(100 * time.Millisecond); {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Now().After(deadline) || !made.Running() {
			return cmp.Or(log.last(), errors.New("the hub does not get ready"))
		}
	}
	if !made.JetStreamEnabled() {
		return cmp.Or(log.last(), errors.New("the hub cannot keep anything"))
	}
	return nil
}

// revokedFile, if it is in the directory of a hub, takes back the credentials that are older.
const revokedFile = "revoked"

// trust has the server trust who shows what the keys have signed since a time.
func (k keys) trust(o *server.Options, since time.Time) error {
	operator, err := k.operator.PublicKey()
	if err != nil {
		return err
	}
	account, err := k.account.PublicKey()
	if err != nil {
		return err
	}
	if o.SystemAccount, err = k.system.PublicKey(); err != nil {
		return err
	}
	o.TrustedOperators = []*jwt.OperatorClaims{jwt.NewOperatorClaims(operator)}
	resolver := &server.MemAccResolver{}
	o.AccountResolver = resolver
	for _, name := range []string{account, o.SystemAccount} {
		claims := jwt.NewAccountClaims(name)
		if name == account {
			claims.RevokeAt(jwt.All, since) // and before
			claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: jwt.NoLimit, DiskStorage: jwt.NoLimit, Streams: jwt.NoLimit, Consumer: jwt.NoLimit}
		}
		token, err := claims.Encode(k.operator)
		if err != nil {
			return err
		}
		if err := resolver.Store(name, token); err != nil {
			return err
		}
	}
	return nil
}

// sessionTime is how long a credential is valid that a connection on this machine gets: it ends
// then, and connects again.
const sessionTime = 24 * time.Hour

// inside opens a connection in this process.
func (s *Server) inside() (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.server.InProcessConn()
}

// connect returns a connection of this process.
func (s *Server) connect(ctx context.Context, r job.Role) (*bus, error) {
	return dial(ctx, job.Address{Role: r}, func(context.Context) (conn net.Conn, c credential, err error) {
		if c, err = s.keys.credential(r, sessionTime); err == nil {
			conn, err = s.inside()
		}
		return conn, c, err
	})
}

// Bus returns a connection to the hub. That to a cluster is the one of the hub itself.
func (s *Server) Bus(ctx context.Context, r job.Role) (job.Bus, error) {
	if s.params.Cluster != nil {
		return asBus(dial(ctx, *s.params.Cluster, nil))
	}
	return asBus(s.connect(ctx, r))
}

// accept lets users in by a door until that is closed.
func (s *Server) accept(door net.Listener) {
	for conn := range tcp.Accepted(door) {
		s.work.Go(func() {
			defer conn.Close()
			if !s.admits(conn) {
				return
			}
			if err := s.pump(conn); err != nil {
				s.say("the connection of a user was ended: %v", err)
			}
		})
	}
}

// handshakeTime bounds the beginning of TLS.
const handshakeTime = 5 * time.Second

// admits reports whether somebody may talk to the server: our own user, or who speaks TLS.
func (s *Server) admits(conn net.Conn) bool {
	ctx, cancel := context.WithTimeout(s.life, handshakeTime)
	defer cancel()
	switch conn := conn.(type) {
	case *net.UnixConn:
		return mux.CheckOwner(s.dir.Path(), conn) == nil
	case *tls.Conn:
		return conn.HandshakeContext(ctx) == nil
	}
	return true
}

// pump serves a connection. The error says what was refused.
func (s *Server) pump(conn net.Conn) (err error) {
	inside, err := s.inside()
	if err != nil {
		return nil // the hub ends
	}
	var sending sync.WaitGroup
	sending.Go(func() {
		if e := filter(inside, conn); errors.Is(e, errRefused) {
			err = e
		}
		inside.Close()
		conn.Close()
	})
	_, _ = io.Copy(conn, inside)
	conn.Close()
	inside.Close()
	sending.Wait()
	return err
}

// Close ends the hub.
func (s *Server) Close() {
	s.end()
	for _, door := range s.doors {
		door.Close()
	}
	if s.bus != nil {
		s.bus.Close()
	}
	s.stop()
	s.work.Wait()
	if s.dir != nil {
		s.dir.Close()
	}
}

// stop ends the server of NATS.
func (s *Server) stop() {
	s.mu.Lock()
	running := s.server
	s.mu.Unlock()
	if running != nil {
		running.Shutdown()
		running.WaitForShutdown()
	}
}

func (s *Server) say(format string, v ...any) {
	if s.params.Log != nil {
		s.params.Log(termsafe.Line(fmt.Sprintf(format, v...)))
	}
}
