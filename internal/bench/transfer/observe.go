//go:build linux

package transfer

import (
	"context"
	"runtime"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/sys/relay"
)

// Ends replace source and destination of the bytes, in tests; nil is sshpace's own.
type Ends struct {
	Source  []string                 // command line whose output is sent; at the server for a download
	Sink    []string                 // command line that reads the bytes; at the server for an upload
	Started func(client, server int) // is called with the processes of the connection
}

// Lengths of an observation.
const (
	observed  = 1000 * time.Millisecond // that is looked at
	beginning = 500 * time.Millisecond  // before that: buffers fill, TCP finds its pace
	look      = 2 * time.Millisecond    // between looks at pipes
	rawProbe  = 400 * time.Millisecond
)

// Watch moves bytes through connections for a while, a little longer on a long path, and returns
// the result of all of them and of the first one's processes.
func (b *Ground) Watch(ctx context.Context, o Options, connections int, longer time.Duration) (e record.Evidence, err error) {
	return e, b.watch(ctx, o, Ends{}, connections, longer, &e)
}

// Limit watches one transfer through a pipe and returns its limit.
func (b *Ground) Limit(ctx context.Context, o Options, ends Ends) (record.Limit, error) {
	l := record.Limit{Mode: record.ModePipe, Direction: o.Direction, Suite: o.Suite, Path: PathOf(b.Path)}
	e := &l.Evidence
	e.Compressed, e.RTTNS = o.Compression, b.RTT+2*b.Path.Delay
	if b.Server != nil {
		e.Cores = runtime.NumCPU()
	}
	err := b.watch(ctx, o, ends, 1, 0, e)
	if err != nil {
		return l, err
	}
	if b.Server != nil {
		e.RawBytesPerS, err = b.raw(ctx, o.Direction)
	} else {
		err = b.twoAtOnce(ctx, o, e)
	}
	if err != nil {
		return l, err
	}
	l.What, l.Sentence, l.Help = limits.Judge(o.Direction, *e)
	return l, nil
}

// twoAtOnce measures how much two connections carry together.
func (b *Ground) twoAtOnce(ctx context.Context, o Options, e *record.Evidence) error {
	two := record.Evidence{RTTNS: e.RTTNS}
	err := b.watch(ctx, o, Ends{}, 2, 0, &two)
	e.TwoBytesPerS, e.TwoBusyCores = two.BytesPerSecond, two.BusyCores
	return err
}

// raw returns the rate of TCP to a listener of ours on the same path, without SSH.
func (b *Ground) raw(ctx context.Context, direction record.Direction) (float64, error) {
	var relays relay.Group
	defer relays.Close()
	by := func(host, port string) (string, error) { return relays.Before(host, port, b.Path) }
	return limits.TCP(ctx, by, direction == record.Download, 256<<10, beginning, rawProbe)
}

// watch moves bytes through connections for a while and watches the first of them.
func (b *Ground) watch(ctx context.Context, o Options, ends Ends, connections int, longer time.Duration, e *record.Evidence) error {
	var flows []*stream
	defer func() {
		for _, s := range flows {
			s.close()
		}
	}()
	for range connections { // all move bytes when the clock starts
		s, err := b.login(ctx, o, ends)
		if s != nil {
			flows = append(flows, s)
		}
		if err != nil {
			return err
		}
	}
	if ends.Started != nil {
		ends.Started(flows[0].client.Process.Pid, flows[0].server())
	}
	if !sched.For(ctx, beginning+longer) {
		return context.Cause(ctx)
	}
	first := flows[0]
	meter, err := first.meter()
	if err != nil {
		return err
	}
	defer meter.close()
	before := total(flows)
	start := time.Now()
	meter.patience = max(100*time.Millisecond, 2*e.RTTNS+50*time.Millisecond)
	meter.watch(ctx, func() bool { return time.Since(start) >= observed+longer || first.over() })
	wall := time.Since(start)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if first.over() {
		return b.explained(first.why(ctx))
	}
	e.BytesPerSecond = float64(total(flows)-before) / wall.Seconds()
	meter.fill(e, wall)
	return nil
}

func total(flows []*stream) (bytes int64) {
	for _, s := range flows {
		bytes += s.moved()
	}
	return bytes
}

// login begins a transfer when the next login is due, and waits until bytes move, or it is over.
func (b *Ground) login(ctx context.Context, o Options, ends Ends) (*stream, error) {
	if err := b.Ticket.Admit(ctx, b.Destination.Label); err != nil {
		return nil, err
	}
	defer b.Ticket.End(admit.Done)
	s, err := b.begin(o, ends)
	if err != nil {
		return nil, err
	}
	return s, sched.Poll(ctx, b.Connect, awaitPoll, func() bool { return s.ready() || s.over() })
}
