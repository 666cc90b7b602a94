package hub

import (
	"context"
	"errors"
	"iter"
	"math"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"sshpace/internal/base/sched"
	"sshpace/internal/fanout/job"
)

// What a reader has asked for and not read yet is at most readAhead bytes. The hub says at least
// every heartbeat that it is there, and forgets a reader that asks for nothing for idle.
const (
	readAhead = 8 << 20
	heartbeat = 5 * time.Second
	idle      = time.Minute
)

// errMissed says that entries were sent and have not come.
var errMissed = errors.New("entries are missing")

func (b *bus) Follow(ctx context.Context, pattern string, o job.FollowOptions) iter.Seq2[job.Entry, error] {
	return func(yield func(job.Entry, error) bool) {
		f := follower{bus: b, pattern: pattern, o: o, next: max(o.From, 1), left: math.MaxUint64}
		for {
			err := f.read(ctx, yield)
			switch {
			case err == nil: // the reader has enough, or all has come
				return
			case ctx.Err() != nil:
				yield(job.Entry{}, context.Cause(ctx))
				return
			case !away(err):
				yield(job.Entry{}, answer(err))
				return
			}
			sched.For(ctx, firstPause)
		}
	}
}

// follower reads a stream by consumers, one after another: each begins behind the last entry that
// has come.
type follower struct {
	bus     *bus
	pattern string
	o       job.FollowOptions
	next    uint64 // sequence
	left    uint64 // with o.Until: entries that are to come
}

// read yields entries of one consumer, until the reader has enough, or the consumer is lost: what a
// lost connection had sent is not sent again by it.
func (f *follower) read(ctx context.Context, yield func(job.Entry, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	again := f.bus.reconnected()
	go func() {
		select {
		case <-again:
			cancel(errMissed)
		case <-ctx.Done():
		}
	}()
	consumer, err := f.consumer(ctx)
	if err != nil {
		return err
	}
	if f.left = min(f.left, consumer.CachedInfo().NumPending); f.left == 0 && f.o.Until {
		return nil
	}
	messages, err := consumer.Messages(jetstream.PullMaxMessagesWithBytesLimit(1000, readAhead), jetstream.PullHeartbeat(heartbeat))
	if err != nil {
		return err
	}
	defer messages.Stop()
	for n := uint64(1); ; n++ {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.Sequence.Consumer != n {
			return errMissed
		}
		f.next, f.left = meta.Sequence.Stream+1, min(f.left-1, meta.NumPending)
		e := job.Entry{Subject: m.Subject(), Seq: meta.Sequence.Stream, Time: meta.Timestamp, Header: header(m.Headers()), Data: m.Data()}
		if !yield(e, nil) || f.o.Until && f.left == 0 {
			return nil
		}
	}
}

// consumer makes a consumer that the server forgets by itself.
func (f *follower) consumer(ctx context.Context) (consumer jetstream.Consumer, err error) {
	name := stream(f.pattern)
	config := jetstream.ConsumerConfig{
		FilterSubject: f.pattern, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: f.next,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: idle, HeadersOnly: f.o.Headers,
	}
	if f.o.Last && f.next == 1 {
		config.DeliverPolicy, config.OptStartSeq = jetstream.DeliverLastPerSubjectPolicy, 0
	}
	err = f.bus.do(ctx, "CONSUMER.CREATE."+name, func(ctx context.Context) error {
		consumer, err = f.bus.js.CreateConsumer(ctx, name, config)
		return err
	})
	return consumer, err
}

// Take waits for a batch of a pool.
func (b *bus) Take(ctx context.Context, pool string, lease time.Duration) (job.Work, error) {
	for {
		consumer, err := b.taker(ctx, pool, lease)
		if err != nil {
			return nil, err
		}
		w, err := b.take(ctx, consumer)
		switch {
		case err == nil:
			return w, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case !away(err):
			return nil, answer(err)
		case !errors.Is(err, context.DeadlineExceeded): // not merely nothing to do
			b.takers.Delete(pool)
			sched.For(ctx, firstPause)
		}
	}
}

// taker returns the consumer of a pool. The hub writes it to its disk when it is asked for it, so
// it is asked once, as long as all goes well.
func (b *bus) taker(ctx context.Context, pool string, lease time.Duration) (consumer jetstream.Consumer, err error) {
	if known, is := b.takers.Load(pool); is {
		return known.(jetstream.Consumer), nil
	}
	err = b.do(ctx, "CONSUMER.CREATE."+batches, func(ctx context.Context) (err error) {
		consumer, err = b.js.CreateOrUpdateConsumer(ctx, batches, jetstream.ConsumerConfig{
			Durable: pool, FilterSubject: "batch." + pool + ".>", AckPolicy: jetstream.AckExplicitPolicy,
			AckWait: lease, MaxDeliver: -1, MaxAckPending: -1,
		})
		return err
	})
	if err == nil {
		b.takers.Store(pool, consumer)
	}
	return consumer, err
}

// pull is how long the hub holds one request for a batch.
const pull = 5 * heartbeat

// take asks for a batch for a while, on one connection.
func (b *bus) take(ctx context.Context, consumer jetstream.Consumer) (*work, error) {
	ctx, cancel := context.WithTimeout(ctx, pull)
	defer cancel()
	deadline, _ := ctx.Deadline()
	beat := min(heartbeat, time.Until(deadline)/3)
	again := b.reconnected()
	found := make(chan error, 1)
	var m jetstream.Msg
	go func() {
		var err error
		m, err = consumer.Next(jetstream.FetchContext(ctx), jetstream.FetchHeartbeat(beat))
		found <- err
	}()
	select {
	case err := <-found:
		if err != nil {
			return nil, err
		}
	case <-again:
		cancel()
		if err := <-found; err != nil {
			return nil, errMissed
		}
	}
	return &work{bus: b, message: m}, nil
}

// work is a batch that was taken.
type work struct {
	bus     *bus
	message jetstream.Msg
}

func (w *work) Subject() string { return w.message.Subject() }

func (w *work) Working(ctx context.Context) error {
	return w.bus.do(ctx, "$JS.ACK", func(context.Context) error { return w.message.InProgress() })
}

func (w *work) Back() error { return w.message.Nak() }

func (w *work) Done(ctx context.Context) error {
	return w.bus.do(ctx, "$JS.ACK", func(ctx context.Context) error {
		err := w.message.DoubleAck(ctx)
		if errors.Is(err, jetstream.ErrMsgAlreadyAckd) {
			return nil
		}
		return err
	})
}
