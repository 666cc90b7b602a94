//go:build linux

package transfer

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
	"sshpace/internal/sys/tcp"
)

// portTries is how often a port that somebody else has taken meanwhile is
// replaced.
const portTries = 3

// forwardLocal moves bytes through a port at this end that ssh forwards to one
// at the server (-L), behind which we listen.
func (b *Bed) forwardLocal(ctx context.Context, o Options, size int64) (reading Reading, err error) {
	if b.Server == nil {
		return b.hostTunnel(ctx, o, "-L", size)
	}
	for range portTries {
		var far *tcp.OwnListener
		if far, err = tcp.ListenOwn(); err != nil {
			return reading, err
		}
		var port string
		if port, err = b.Port(); err != nil {
			return reading, errors.Join(err, far.Close())
		}
		reading, err = b.tunnel(ctx, o, "-L", "127.0.0.1:"+port+":"+far.Addr().String(), far, size, func(func() string) string { return port })
		far.Close()
		if err == nil || !strings.Contains(err.Error(), "in use") {
			return reading, err
		}
	}
	return reading, err
}

// forwardRemote moves bytes through a port at the server that is forwarded to
// one at this end (-R), behind which we listen. What is sent to it goes down.
func (b *Bed) forwardRemote(ctx context.Context, o Options, size int64) (Reading, error) {
	if b.Server == nil {
		return b.hostTunnel(ctx, o, "-R", size)
	}
	near, err := tcp.ListenOwn()
	if err != nil {
		return Reading{}, err
	}
	defer near.Close()
	return b.tunnel(ctx, o, "-R", "127.0.0.1:0:"+near.Addr().String(), near, size, func(said func() string) string { return allocated(said()) })
}

// allocated is the port that ssh says the server has allocated; "" until it does.
func allocated(said string) string {
	_, rest, _ := strings.Cut(said, "Allocated port ")
	port, _, found := strings.Cut(rest, " ")
	if !found {
		return ""
	}
	return port
}

// forwarding is an ssh that does nothing but forward a port.
func (b *Bed) forwarding(o Options, flag, spec string) Process {
	to := b.destination(o).With("ExitOnForwardFailure=yes").Replacing("ClearAllForwardings", "").Replacing("SessionType", "")
	argv := b.SSH.Leading(to, o.Suite, b.Connect)
	return Process{Argv: append(argv, "-N", flag, spec, "--", b.To.Host), Env: b.To.Env}
}

// refusal stands in what ssh says when the server opens no connection for a port.
const refusal = ": open failed: "

// refusalPoll is how often that is looked for.
const refusalPoll = 50 * time.Millisecond

// refusedIn is that, as an error; nil where it does not stand there.
func refusedIn(said string) *Failure {
	_, why, found := strings.Cut(said, refusal)
	if !found {
		return nil
	}
	why, _, _ = strings.Cut(why, "\n")
	return &Failure{"forwarded port", "the server refuses it: " + strings.TrimSpace(why)}
}

// unlessRefused ends a context when ssh says that the server opens no connection: at
// this end nothing else tells, and whoever waits at the other end waits for ever. Over
// ends the looking, and puts what ssh said in the place of an error that came of it.
func unlessRefused(ctx context.Context, said func() string) (_ context.Context, over func(*error)) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for sched.For(ctx, refusalPoll) {
			if refusedIn(said()) != nil {
				cancel()
			}
		}
	}()
	return ctx, func(err *error) {
		if *err != nil {
			time.Sleep(refusalPoll) // what ssh said may be on its way
			if refused := refusedIn(said()); refused != nil {
				*err = refused
			}
		}
		cancel()
	}
}

// tunnel starts ssh with one forwarded port, connects to it when portOf knows it,
// and moves size bytes to or from the connection that comes out at the listener.
func (b *Bed) tunnel(ctx context.Context, o Options, flag, spec string, listener *tcp.OwnListener, size int64, portOf func(said func() string) string) (Reading, error) {
	from, err := b.Here.Of(size)
	if err != nil {
		return Reading{}, err
	}
	return b.Around(ctx, b.forwarding(o, flag, spec), func(ctx context.Context, said func() string) (err error) {
		ctx, over := unlessRefused(ctx, said)
		defer over(&err)
		stop := context.AfterFunc(ctx, func() { listener.Close() })
		defer stop()
		in, out, err := b.throughTunnel(ctx, listener, func() string { return portOf(said) })
		if err != nil {
			return &Failure{"ssh " + flag, "no data came through the forwarded port: " + err.Error()}
		}
		defer in.Close()
		defer out.Close()
		if (flag == "-L") == (o.Direction == record.Download) { // the other way round
			in, out = out, in
		}
		return pour(ctx, in, out, from, size)
	})
}

// throughTunnel connects to a forwarded port and takes the connection that comes
// out of it.
func (b *Bed) throughTunnel(ctx context.Context, listener *tcp.OwnListener, port func() string) (in, out *net.TCPConn, err error) {
	if in, err = b.dialed(ctx, port); err != nil {
		return nil, nil, err
	}
	other, err := listener.Accept()
	if err != nil {
		in.Close()
		return nil, nil, errors.New("the server opens no connection for it")
	}
	return in, other.(*net.TCPConn), nil
}

// dialed is a connection to a port of this machine, as soon as it is there.
func (b *Bed) dialed(ctx context.Context, port func() string) (conn *net.TCPConn, err error) {
	err = await(ctx, b.Connect, func() bool {
		if port() == "" {
			return false
		}
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port()))
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err == nil
	})
	return conn, err
}

// pour sends a file into one connection and counts what comes out of the other.
func pour(ctx context.Context, in, out *net.TCPConn, from string, size int64) error {
	stop := context.AfterFunc(ctx, func() { past := time.Unix(1, 0); _, _ = in.SetDeadline(past), out.SetDeadline(past) })
	defer stop()
	sent := make(chan error, 1)
	go func() { sent <- give(ctx, in, from) }()
	got, err := discard(out)
	if err = errors.Join(err, <-sent); err != nil {
		return &Failure{"forwarded port", err.Error()}
	}
	return Arrived("forwarded port", got, size)
}

// atOnce is how much is read and written at once; cat(1) and cp(1) have as much.
const atOnce = 128 << 10

// give sends a file into a connection as users' programs do, by read(2) and write(2):
// the copy that sendfile(2) spares itself is left to ssh, which then reads pages of the
// file that no core has touched yet, for a third more system time per byte.
func give(ctx context.Context, conn *net.TCPConn, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_, err = plainly(conn, file)
	return errors.Join(err, conn.CloseWrite())
}

// discard reads to the end of a connection, as users' programs do.
func discard(conn *net.TCPConn) (int64, error) { return plainly(io.Discard, conn) }

// plainly copies without the kernel's short cuts.
func plainly(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, atOnce))
}

// freePort is one that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
