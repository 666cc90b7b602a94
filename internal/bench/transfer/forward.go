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

// portTries is how often a port that somebody else has taken meanwhile is replaced.
const portTries = 3

// forwardLocal moves bytes through a port at this end that ssh forwards to one at the server (-L),
// where the far end listens.
func (b *Ground) forwardLocal(ctx context.Context, o Options, size int64) (reading Reading, err error) {
	for range portTries {
		reading, err = b.forward(ctx, o, "-L", size)
		if err == nil || !strings.Contains(err.Error(), "in use") {
			break
		}
	}
	return reading, err
}

// forwardRemote moves bytes through a port at the server that is forwarded to one at this end (-R),
// where we listen.
func (b *Ground) forwardRemote(ctx context.Context, o Options, size int64) (Reading, error) {
	return b.forward(ctx, o, "-R", size)
}

// forward moves size bytes between this end and the far one.
func (b *Ground) forward(ctx context.Context, o Options, flag string, size int64) (reading Reading, err error) {
	from, err := b.Here.Of(size)
	if err != nil {
		return reading, err
	}
	far, err := b.farEnd(ctx, o, flag == "-L", from, size)
	if err != nil {
		return reading, err
	}
	defer far.close()
	near, err := tcp.ListenOwn()
	if err != nil {
		return reading, err
	}
	defer near.Close()
	port, spec := "", "127.0.0.1:0:"+near.Addr().String()
	if flag == "-L" {
		near.Close()
		if port, err = b.Port(); err != nil {
			return reading, err
		}
		spec = "127.0.0.1:" + port + ":127.0.0.1:" + far.port()
	}
	return b.Around(ctx, b.forwarding(o, flag, spec), func(ctx context.Context, said func() string) (err error) {
		ctx, over := unlessRefused(ctx, said)
		defer over(&err)
		defer context.AfterFunc(ctx, func() { near.Close() })()
		conn, err := b.nearEnd(ctx, port, near, far, said)
		if err != nil {
			return &Failure{"ssh " + flag, "no data came through the forwarded port: " + err.Error()}
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		var got int64
		sent := make(chan error, 1)
		if o.Direction == record.Download {
			go func() { sent <- far.give(ctx, from) }()
			got, err = discard(conn)
		} else {
			go func() { sent <- give(conn, from) }()
			got, err = far.take(ctx)
		}
		if err = errors.Join(err, <-sent); err != nil {
			return &Failure{"forwarded port", err.Error()}
		}
		return Arrived("forwarded port", got, size)
	})
}

// nearEnd returns the connection at this end of a forwarded port, or "" where ssh reports which
// port at the server is forwarded.
func (b *Ground) nearEnd(ctx context.Context, port string, near *tcp.OwnListener, far far, said func() string) (*net.TCPConn, error) {
	if port != "" {
		return b.dialed(ctx, port)
	}
	if err := sched.Poll(ctx, b.Connect, awaitPoll, func() bool { port = allocated(said()); return port != "" }); err != nil {
		return nil, err
	}
	if err := far.connect(ctx, port); err != nil {
		return nil, err
	}
	return accepted(near)
}

// accepted returns the connection that comes out of a forwarded port.
func accepted(l *tcp.OwnListener) (*net.TCPConn, error) {
	conn, err := l.Accept()
	if err != nil {
		return nil, errors.New("the server opens no connection for it")
	}
	return conn.(*net.TCPConn), nil
}

// allocated returns the port at the server that ssh reports; "" until it does.
func allocated(said string) string {
	_, rest, _ := strings.Cut(said, "Allocated port ")
	port, _, found := strings.Cut(rest, " ")
	if !found {
		return ""
	}
	return port
}

// forwarding returns an ssh that only forwards a port.
func (b *Ground) forwarding(o Options, flag, spec string) Process {
	to := b.destination(o).With("ExitOnForwardFailure=yes").Replacing("ClearAllForwardings", "").Replacing("SessionType", "")
	argv := b.SSH.Leading(to, o.Suite, b.Connect)
	return Process{Argv: append(argv, "-N", flag, spec, "--", b.Destination.Host), Env: b.Destination.Env}
}

// refusal is part of ssh's message when the server opens no connection for a port.
const refusal = ": open failed: "

// refusalPoll is the interval at which we look for that.
const refusalPoll = 50 * time.Millisecond

// refusedIn returns ssh's message about a refused forwarding as an error; nil where there is none.
func refusedIn(said string) *Failure {
	_, why, found := strings.Cut(said, refusal)
	if !found {
		return nil
	}
	why, _, _ = strings.Cut(why, "\n")
	return &Failure{"forwarded port", "the server refuses it: " + strings.TrimSpace(why)}
}

// unlessRefused ends a context when ssh reports that the server opens no connection: at this end
// nothing else shows it, and the other end waits for ever. over ends the watch, and replaces an
// error that followed from it by ssh's message.
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
			time.Sleep(refusalPoll) // ssh's message may still be in flight
			if refused := refusedIn(said()); refused != nil {
				*err = refused
			}
		}
		cancel()
	}
}

// dialed returns a connection to a port of this machine, as soon as it accepts one.
func (b *Ground) dialed(ctx context.Context, port string) (conn *net.TCPConn, err error) {
	err = sched.Poll(ctx, b.Connect, awaitPoll, func() bool {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp4", net.JoinHostPort("127.0.0.1", port))
		if err == nil {
			conn = c.(*net.TCPConn)
		}
		return err == nil
	})
	return conn, err
}

// atOnce is the size of reads and writes; cat(1) and cp(1) use the same.
const atOnce = 128 << 10

// give sends a file into a connection as users' programs do, by read(2) and write(2): sendfile(2)
// would leave its copy to ssh, which then reads pages of the file that no core has touched yet, for
// a third more system time per byte.
func give(conn *net.TCPConn, from string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = plainly(conn, file)
	return errors.Join(err, conn.CloseWrite())
}

// discard reads to the end of a connection, as users' programs do.
func discard(conn *net.TCPConn) (int64, error) { return plainly(io.Discard, conn) }

// plainly copies without the kernel's short cuts.
func plainly(to io.Writer, from io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, atOnce))
}

// freePort returns a TCP port that was free a moment ago.
func freePort() (string, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
