//go:build linux

package drive

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// remoteConnections is the default number of open connections to a user's host. All but one of them
// are idle.
const remoteConnections = 12

// Capacity returns how many connections may be open at a time.
func (r *Remote) Capacity() int { return remoteConnections }

// distant is a connection to a user's host that stays open. At its remote end a shell carries out
// one command after the other and reports, after each, the cost of the server's process of this
// connection so far.
type distant struct {
	*client
	mover   *mover
	in, out *os.File // standard input and output of the client
	mark    string
	clock   *proc.Clock
	used    time.Duration // by the client, at the end of the last slice
	server  time.Duration // by the server then; 0: unknown
	room    int           // of the smaller pipe

	perByte map[record.Direction]float64 // wall time in ns
	warm    map[record.Direction]bool
	login   time.Duration // from the start of the client to its first word
	path    *path
}

// path is shared by all connections to a host: chance effects of a single connection would distort
// its ratio to the others.
type path struct {
	exchange time.Duration // time of a command without a payload: a round trip, and the work of the shell
}

// serving returns the command for the remote end. It reads "u N" and N bytes, or "d N", which it
// answers with N bytes; a line with the mark and /proc/PID/schedstat follows. Any error ends it. N
// is a multiple of 32 KiB: dd(1) writes whole blocks, but counts a part of one as a whole when it
// reads.
func serving(mark string) string {
	return openssh.Shell(announce(mark) + "; while read d n; do case $d in" +
		" u) head -c $n >/dev/null || exit 3;;" +
		" d) dd if=/dev/zero bs=32768 count=$((n / 32768)) 2>/dev/null || exit 3;;" +
		" esac; " + announce(mark) + "; done")
}

// Open opens connections one after the other, with pauses between them, and calls each with the
// sample of each. A host that keeps refusing is a *HostError.
func (r *Remote) Open(ctx context.Context, trials []record.Trial, each func(record.Trial, record.Sample) error) error {
	return r.open(ctx, &r.Rig, trials, opening{1, r.due, r.enter, r.reckon}, each)
}

// enter opens one connection.
func (r *Remote) enter(ctx context.Context, trials []record.Trial) (o opened) {
	t := trials[0]
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return opened{err: err}
	}
	c := &distant{mover: r.mover, in: ends.In, out: ends.Out, mark: openssh.NewMark(), path: &r.path, perByte: map[record.Direction]float64{}, warm: map[record.Direction]bool{}}
	c.client, err = r.start(r.Destination, t, r.Dir.File(fmt.Sprintf("sitting.%d", t.ID)), serving(c.mark), ends.Stdin, ends.Stdout)
	ends.HandOver()
	if err != nil {
		c.close()
		return opened{err: err}
	}
	o.sample.Start = c.Began
	if err := c.greet(ctx); err != nil {
		c.linger(err)
		c.Kill()
		c.finish(&o.sample, err)
		c.close()
		return o
	}
	c.judge(&o.sample, c.SoFar(), nil)
	o.sample.Phases = &record.Phases{LoginNS: c.login}
	o.line = c
	return o
}

// greet waits until the remote end is ready and has moved data once.
func (c *distant) greet(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, c.Cut)()
	c.room = min(flow.Resize(flow.Descriptor(c.in), widePipe), flow.Resize(flow.Descriptor(c.out), widePipe))
	if err := c.acknowledge(); err != nil {
		return cancelled(ctx, err)
	}
	c.login = time.Since(c.Began)
	if c.clock, err = proc.OpenClock(c.Process.Pid); err != nil {
		return openssh.ErrEnded
	}
	took, err := quickest(func() error {
		if err := c.send(ctx, 0); err != nil {
			return err
		}
		return cancelled(ctx, c.acknowledge())
	})
	if err != nil {
		return err
	}
	c.path.learn(took)
	_, err = c.carry(ctx, record.Upload, calibration[0])
	return err
}

// learn keeps the time of the quickest exchange. Every slice has one.
func (p *path) learn(took time.Duration) {
	if p.exchange == 0 || took < p.exchange {
		p.exchange = took
	}
}

// exchanges is the number of exchanges that find the shortest time of one.
const exchanges = 3

func quickest(exchange func() error) (least time.Duration, err error) {
	for i := range exchanges {
		began := time.Now()
		if err := exchange(); err != nil {
			return 0, err
		}
		if took := time.Since(began); i == 0 || took < least {
			least = took
		}
	}
	return least, nil
}

// Bytes before a slice on a long path open the congestion window, which TCP closes while a
// connection is idle (RFC 2861, RFC 9438 section 5): in slow start a sender has sent about twice
// the window until it is open.
const roundTripsOpen = 2 // round trips of these bytes with an open window

// share returns the bytes that take the reference about length: all connections move the same
// amount. When a window limits the transfer, bytes arrive in steps of one window per round trip:
// with different sizes, the ratio of two connections would be that of their steps. A connection
// that is many times as slow moves fewer.
func (c *distant) share(ctx context.Context, s *sitting, t record.Trial, length time.Duration) (int64, error) {
	d := t.Direction
	if !c.warm[d] {
		if err := c.rouse(ctx, d, length); err != nil {
			return 0, err
		}
	}
	n := s.sizes[sliceKey{d: d}]
	if n == 0 || t.Role == record.RoleReference && !near(c.perByte[d]*float64(n), float64(length)) {
		wanted := c.sizeFor(d, length)
		if n > 0 {
			wanted = min(wanted, mostGrowth*n)
		}
		n = wanted
		s.sizes[sliceKey{d: d}] = n
	}
	if c.path.exchange >= plan.LongPath {
		if _, err := c.carry(ctx, d, min(n, c.sizeFor(d, roundTripsOpen*c.path.exchange))); err != nil {
			return 0, err
		}
	}
	return min(n, c.sizeFor(d, patient*length)), nil
}

const (
	patient    = 4 // times as long as the reference's a slice may take at most
	mostGrowth = 4 // of a size at once: one slice that seemed to take no time must not make the next one endless
)

// near reports whether a slice takes about as long as it should: then its size stays.
func near(takes, should float64) bool { return takes < 1.5*should && should < 1.5*takes }

// rouse moves more and more data, then about a slice at a time, until that gets no faster: TCP's
// buffers and windows grow with the data (tcp(7), tcp_rmem and tcp_wmem). On loopback this takes
// 0.3 s, in which a connection is half as fast as the one that it is compared with.
func (c *distant) rouse(ctx context.Context, d record.Direction, length time.Duration) error {
	length = plan.Awakening(length, c.path.exchange)
	a := awakening{fastest: math.Inf(1)}
	for n := calibration[0]; ; {
		out, err := c.carry(ctx, d, n)
		if err != nil {
			return err
		}
		c.perByte[d] = c.rate(out)
		if out.WallNS < length/2 && n < mostLong {
			n = min(mostGrowth*n, mostLong)
			continue
		}
		if c.warm[d] = a.awake(c.perByte[d]); c.warm[d] {
			return nil
		}
		n = c.sizeFor(d, length)
	}
}

// awakening follows a connection until it has reached its full speed.
type awakening struct {
	fastest float64 // of its slices so far, in ns per byte
	settled int     // slices in a row that were not much faster than the best before
}

// A connection is awake after this many slices in a row, none of them faster than the best before
// by this factor.
const (
	steadySlices = 3
	muchFaster   = 1.1
)

// awake reports whether the connection has reached its full speed, after a slice with this time per
// byte.
func (a *awakening) awake(nsPerByte float64) bool {
	a.settled++
	if nsPerByte < a.fastest/muchFaster {
		a.settled, a.fastest = 0, nsPerByte
	}
	return a.settled >= steadySlices
}

// cancelled returns the reason why ctx ended, or err.
func cancelled(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Canceled
	}
	return err
}

// command sends a command to the remote end.
func (c *distant) command(what string, n int64) error {
	if _, err := fmt.Fprintf(c.in, "%s %d\n", what, n); err != nil {
		return openssh.ErrEnded
	}
	return nil
}

// acknowledge waits for the end of a command and reads the server's cost.
func (c *distant) acknowledge() error {
	_ = c.out.SetReadDeadline(time.Now().Add(c.mover.limit))
	rest, err := openssh.AwaitMark(c.out, c.mark+"-ready")
	if err != nil {
		return err
	}
	c.server = 0
	if fields, err := proc.ParseSchedstat(rest); err == nil {
		c.server = fields[0]
	}
	return nil
}

// sizeFor returns the bytes that take about length.
func (c *distant) sizeFor(d record.Direction, length time.Duration) int64 {
	return bounded(packet*math.Round(float64(length)/c.perByte[d]/packet), leastShort, mostLong)
}

// slice moves exactly n bytes, which are one slice, and updates the rate from it.
func (c *distant) slice(ctx context.Context, d record.Direction, n int64, _ bool) (record.Slice, error) {
	out, err := c.carry(ctx, d, n)
	if err == nil {
		c.perByte[d] = math.Sqrt(c.perByte[d] * c.rate(out)) // one slice is not a rate: sizes should stay equal
	}
	return out, err
}

// rate returns the time of a slice per byte, in ns. A slice shorter than part of an exchange means
// little.
func (c *distant) rate(s record.Slice) float64 {
	return float64(max(s.WallNS, c.path.exchange/4)) / float64(s.Bytes)
}

// carry moves exactly n bytes and returns the time and costs, without the exchange around them.
func (c *distant) carry(ctx context.Context, d record.Direction, n int64) (out record.Slice, err error) {
	began, harness, server := c.mover.begin(), proc.Self(), c.server
	out.Bytes = unit.Bytes(n)
	if d == record.Download {
		err = c.receive(ctx, n)
	} else {
		err = c.send(ctx, n)
	}
	if err != nil {
		return out, err
	}
	if err := c.acknowledge(); err != nil {
		return out, cancelled(ctx, err)
	}
	took := time.Since(began)
	c.path.learn(took)
	out.WallNS = max(took-c.path.exchange, time.Microsecond)
	used, err := c.clock.CPU()
	if err != nil {
		return out, openssh.ErrEnded
	}
	out.ClientCPUNS, c.used = difference(c.used, used), used
	if server > 0 && c.server > 0 {
		out.ServerCPUNS = difference(server, c.server)
	}
	out.HarnessCPUNS = proc.Self() - harness
	return out, c.mover.pause()
}

// send writes n bytes.
func (c *distant) send(ctx context.Context, n int64) error {
	if err := c.command("u", n); err != nil {
		return err
	}
	for since := time.Now(); n > 0; {
		k, err := c.mover.payload.Feed(flow.Descriptor(c.in), n)
		if err != nil {
			return openssh.ErrEnded
		}
		if n -= k; n == 0 {
			return nil
		}
		if err := c.wait(ctx, record.Upload, k, &since); err != nil {
			return err
		}
	}
	return nil
}

// receive reads n bytes.
func (c *distant) receive(ctx context.Context, n int64) error {
	if err := c.command("d", n); err != nil {
		return err
	}
	for since, got := time.Now(), int64(0); ; {
		k, ended, err := flow.Drain(flow.Descriptor(c.out), c.mover.null, n-got)
		if err != nil || ended {
			return openssh.ErrEnded
		}
		if got += k; got == n {
			return nil
		}
		if err := c.wait(ctx, record.Download, k, &since); err != nil {
			return err
		}
	}
}

// wait sleeps until half a pipe can be moved, after k bytes have just been, and fails if nothing
// has for too long.
func (c *distant) wait(ctx context.Context, d record.Direction, k int64, since *time.Time) error {
	now := time.Now()
	if k > 0 {
		*since = now
	} else if still := now.Sub(*since); still > stallLook {
		if err := c.alive(ctx, still, c.mover.limit); err != nil {
			return err
		}
	}
	c.mover.nap(min(max(time.Duration(c.perByte[d]*float64(c.room)/2), shortestNap), longestNap))
	return nil
}

// end closes the connection and returns the number of rekeys.
func (c *distant) end() (rekeys int) {
	_ = c.in.Close()
	c.Linger()
	c.Kill()
	n, _ := c.Negotiation()
	c.close()
	return n.Rekeys
}

// close releases a connection whose client has ended.
func (c *distant) close() {
	for _, f := range []io.Closer{c.in, c.out} {
		_ = f.Close()
	}
	if c.clock != nil {
		c.clock.Close()
	}
}

// reckon counts refusals, and gives up a host that keeps refusing.
func (r *Remote) reckon(s record.Sample) error {
	refused := s.Outcome == record.Refused
	if again := r.again(refused); refused && !again {
		return &HostError{openssh.Failed{Outcome: record.Refused, Said: fmt.Sprintf("the host refused %d connections in a row: %s", admit.MostRefused, s.Detail)}}
	}
	return nil
}
