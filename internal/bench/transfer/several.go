//go:build linux

package transfer

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/safedir"
)

// streams moves bytes over several connections at once.
func (b *Ground) streams(ctx context.Context, o Options, size int64) (Reading, error) {
	return b.side(ctx, o, size, slices.Repeat([]openssh.Destination{b.destination(o)}, o.Streams)...)
}

// multiplex moves bytes through several sessions of one connection: a master that is there before
// the clock starts, and clients that ask it for sessions.
func (b *Ground) multiplex(ctx context.Context, o Options, size int64) (Reading, error) {
	b.serial++
	short, dir, err := safedir.Short(b.Here.Directory)
	if err != nil {
		return Reading{}, err
	}
	defer dir.Close()
	socket := fmt.Sprintf("%s/m.%d", short, b.serial)
	defer os.Remove(socket)
	master := b.destination(o).Replacing("ControlMaster", "yes").Replacing("ControlPath", socket)
	argv := append(b.SSH.Leading(master.Replacing("SessionType", ""), o.Suite, b.Connect), "-N", "--", b.Destination.Host)
	client := b.destination(o).Over(socket)
	var inner Reading
	outer, err := b.Around(ctx, Process{Argv: argv, Env: b.Destination.Env}, func(ctx context.Context, _ func() string) error {
		if err := sched.Poll(ctx, b.Connect, awaitPoll, func() bool { _, err := os.Stat(socket); return err == nil }); err != nil {
			return &Failure{"ssh", "the connection to share could not be opened"}
		}
		var err error
		inner, err = b.side(ctx, o, size, slices.Repeat([]openssh.Destination{client}, o.Streams)...)
		return err
	})
	return Reading{Wall: inner.Wall, Client: inner.Client + outer.Client, Server: outer.Server}, err
}

// kept moves bytes through a session on the user's own master, whose CPU time is that of all its
// sessions: this one's is not known.
func (b *Ground) kept(ctx context.Context, o Options, size int64) (Reading, error) {
	r, err := b.side(ctx, o, size, b.destination(o).Over(b.Destination.Master))
	r.Client = 0
	return r, err
}

// Around runs a process while do runs, which can read the process's standard error so far. The wall
// time is that of do, from the start of the process on.
func (r *Runner) Around(ctx context.Context, p Process, do func(ctx context.Context, said func() string) error) (Reading, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Limit, context.DeadlineExceeded)
	defer cancel()
	before := r.serverCPU()
	start := time.Now()
	j, err := r.start(ctx, p)
	if err != nil {
		return Reading{}, err
	}
	doing, stop := context.WithCancel(ctx)
	defer stop()
	go func() { <-j.Ended; stop() }()
	r.nested = true
	err = do(doing, j.said.String)
	r.nested = false
	reading := Reading{Wall: time.Since(start)}
	early := j.HasEnded()
	j.terminate()
	if why := j.wait(ctx); early && err != nil {
		err = cmp.Or(why, error(&Failure{p.Argv[0], "it ended too early"}))
	}
	reading.Client = j.CPU()
	reading.Server = r.serverCPU() - before
	return reading, err
}

// awaitPoll is the interval at which expected events are polled.
const awaitPoll = time.Millisecond
