package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path/filepath"
	"sync"
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

// Params are those of a hub.
type Params struct {
	Dir    string // of its state, 0700
	Limits Limits
	Log    func(text string) // gets lines about trouble, safe for a terminal; may be nil
}

// Server is a hub in this process.
type Server struct {
	params Params
	dir    *safedir.Directory
	keys   keys
	socket *mux.Listener
	server *server.Server
	bus    *bus
	pumps  sync.WaitGroup
}

// socketName names the socket in the directory of a hub. It also keeps other hubs away.
const socketName = "socket"

// readyIn is how long a hub may take to read what it keeps.
const readyIn = 5 * time.Minute

// Serve starts a hub in this process.
func Serve(ctx context.Context, p Params) (s *Server, err error) {
	p.Limits.Bytes = cmp.Or(p.Limits.Bytes, DefaultLimits.Bytes)
	p.Limits.Age = cmp.Or(p.Limits.Age, DefaultLimits.Age)
	p.Limits.Replicas = cmp.Or(p.Limits.Replicas, DefaultLimits.Replicas)
	s = &Server{params: p}
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	if s.dir, err = safedir.Make(p.Dir); err != nil {
		return s, err
	}
	if s.socket, err = mux.Listen(filepath.Join(s.dir.Path(), socketName)); err != nil {
		return s, socketError(err)
	}
	if s.keys, err = openKeys(s.dir, true); err != nil {
		return s, err
	}
	if err = s.start(); err != nil {
		return s, err
	}
	if s.bus, err = dial(ctx, s.inProcess(itself)); err != nil {
		return s, err
	}
	if err = s.bus.prepare(ctx, p.Limits); err != nil {
		return s, err
	}
	s.pumps.Go(s.accept)
	return s, nil
}

// socketError returns an error of a socket in words about a hub.
func socketError(err error) error {
	var at *mux.Error
	switch {
	case errors.Is(err, mux.ErrLives):
		return fault.WithHint(errors.New("a hub runs with this directory already"), "end that one first, or name another directory by --state")
	case errors.As(err, &at):
		return fmt.Errorf("the hub's socket %s %s", at.Path, at.Text)
	}
	return err
}

// accept serves the connections to the socket.
func (s *Server) accept() {
	for conn := range tcp.Accepted(s.socket) {
		s.pumps.Go(func() {
			if mux.CheckOwner(s.socket.Path, conn.(*net.UnixConn)) == nil {
				s.pump(conn)
			}
			conn.Close()
		})
	}
}

// pump serves a connection.
func (s *Server) pump(conn net.Conn) {
	inside, err := s.server.InProcessConn()
	if err != nil {
		return
	}
	go func() {
		_, _ = io.Copy(inside, conn)
		inside.Close()
	}()
	_, _ = io.Copy(conn, inside)
}

// start starts the server of NATS.
func (s *Server) start() error {
	o := &server.Options{
		ServerName: "sshpace", DontListen: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: filepath.Join(s.dir.Path(), "jetstream"), SyncAlways: true,
		// The limits are those of the streams.
		JetStreamMaxStore: math.MaxInt64 / 2, JetStreamMaxMemory: 256 << 20,
	}
	if err := s.keys.trust(o); err != nil {
		return err
	}
	var err error
	if s.server, err = server.NewServer(o); err != nil {
		return err
	}
	log := serverLog{log: s.params.Log}
	s.server.SetLoggerV2(log, false, false, false)
	s.server.Start()
	if !s.server.ReadyForConnections(readyIn) {
		return errors.New("the hub does not get ready")
	}
	return nil
}

// trust has the server trust who shows what the keys have signed.
func (k keys) trust(o *server.Options) error {
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

// inProcess returns how this process reaches its own hub.
func (s *Server) inProcess(r Role) Address {
	return Address{Role: r, open: func(context.Context) (net.Conn, Credential, error) {
		c, err := s.keys.credential(r, sessionTime)
		if err != nil {
			return nil, c, err
		}
		conn, err := s.server.InProcessConn()
		return conn, c, err
	}}
}

// Bus returns a connection to the hub.
func (s *Server) Bus(ctx context.Context, r Role) (job.Bus, error) { return dial(ctx, s.inProcess(r)) }

// Close ends the hub.
func (s *Server) Close() {
	if s.socket != nil {
		s.socket.Close()
	}
	if s.bus != nil {
		s.bus.Close()
	}
	if s.server != nil {
		s.server.Shutdown()
		s.server.WaitForShutdown()
	}
	s.pumps.Wait()
	if s.dir != nil {
		s.dir.Close()
	}
}

// serverLog passes on what the server of NATS says of trouble.
type serverLog struct{ log func(string) }

func (l serverLog) say(format string, v []any) {
	if l.log != nil {
		l.log(termsafe.Line(fmt.Sprintf(format, v...)))
	}
}

func (l serverLog) Warnf(format string, v ...any)  { l.say(format, v) }
func (l serverLog) Errorf(format string, v ...any) { l.say(format, v) }
func (l serverLog) Fatalf(format string, v ...any) { l.say(format, v) }
func (serverLog) Noticef(string, ...any)           {}
func (serverLog) Debugf(string, ...any)            {}
func (serverLog) Tracef(string, ...any)            {}
