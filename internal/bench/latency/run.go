package latency

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sshpace/internal/base/sched"
)

// Echo is a byte that came back, or did not.
type Echo struct {
	Lane    string        `json:"lane"`
	Seq     int           `json:"seq"`        // from 1, the same in all lanes at about the same time
	At      time.Duration `json:"at_ns"`      // when it was to be sent, since the beginning
	Latency time.Duration `json:"latency_ns"` // since then; -1: it never came back
	Loaded  bool          `json:"loaded"`     // sent during a bulk transfer
}

// Lost is the latency of a byte that never came back.
const Lost = time.Duration(-1)

// Options of Run.
type Options struct {
	Interval time.Duration // between two bytes of a lane
	Count    int           // of bytes in each lane, idle and loaded each; 0: until ctx ends
	Grace    time.Duration // how long the last bytes may take to come back
	Load     *Load         // nil: none
	Phase    time.Duration // how long idle and loaded times take in turn, where Count is 0
}

type run struct {
	Options
	lanes  []*Lane
	start  time.Time
	echoes chan Echo
	broken chan error
	over   chan struct{}
}

// Run sends bytes until there are enough, ctx ends, or a session breaks, and calls each for every
// byte, in the order in which they come back; lost ones come at the end. skipped counts rounds that
// this machine missed, such as while it was stopped.
func Run(ctx context.Context, lanes []*Lane, o Options, each func(Echo)) (skipped int, err error) {
	r := &run{Options: o, lanes: lanes, echoes: make(chan Echo, 1024), broken: make(chan error, len(lanes)), over: make(chan struct{}), start: time.Now().Add(o.Interval)}
	defer close(r.over)
	for _, l := range lanes {
		go l.listen(r)
	}
	defer func() { err = errors.Join(err, o.Load.Broken()) }()
	sent := make(chan int, 1)
	sending, stop := context.WithCancel(ctx)
	defer stop()
	go func() { sent <- r.send(sending) }()
	var over <-chan time.Time
	told := 0
	for {
		select {
		case e := <-r.echoes:
			each(e)
			if told++; over != nil && told == r.sent() {
				return skipped, err
			}
		case err = <-r.broken:
			stop()
		case skipped = <-sent:
			sent = nil
			over = time.After(o.Grace)
			if err != nil || told == r.sent() {
				over = time.After(0)
			}
		case <-over:
			r.rest(each)
			return skipped, err
		}
	}
}

// late is how far behind its schedule a round may still be sent: a machine that was stopped must
// not send all missed rounds at once.
const late = time.Second

// send sends by the schedule, each lane at its own part of the interval.
func (r *run) send(ctx context.Context) (skipped int) {
	rounds := r.Count
	if r.Load != nil {
		rounds *= 2
	}
	for seq := 1; rounds == 0 || seq <= rounds; seq++ {
		loaded := r.loaded(seq)
		r.Load.Flow(r.flows(seq))
		for i, l := range r.lanes {
			at := time.Duration(seq-1)*r.Interval + r.Interval*time.Duration(i)/time.Duration(len(r.lanes))
			due := r.start.Add(at)
			if !sched.Until(ctx, due) {
				return skipped
			}
			if i == 0 && time.Since(due) > late {
				skipped++
				break
			}
			if err := l.send(sending{Echo{Lane: l.Name, Seq: seq, At: at, Loaded: loaded}, due}); err != nil {
				return skipped // the listener reports the reason
			}
		}
	}
	return skipped
}

// settle is the time in which the rest of a transfer gets through.
const settle = time.Second

// loaded reports whether a round is beside a transfer: the second half of a count, every other
// phase without one, and while the rest of a transfer gets through.
func (r *run) loaded(seq int) bool {
	switch {
	case r.Load == nil:
		return false
	case r.Count > 0:
		return seq > r.Count
	}
	rounds, settling := max(1, int(r.Phase/r.Interval)), int(settle/r.Interval)
	phase, within := (seq-1)/rounds, (seq-1)%rounds
	return phase%2 == 1 || phase > 0 && within < settling
}

// flows reports whether the transfer flows in a round.
func (r *run) flows(seq int) bool {
	return r.loaded(seq) && (r.Count > 0 || (seq-1)/max(1, int(r.Phase/r.Interval))%2 == 1)
}

// letter returns the byte for a place in a lane: one without another meaning to a terminal or
// program.
func letter(place int) byte { return 'a' + byte(place%26) }

func (l *Lane) send(s sending) error {
	l.mu.Lock()
	l.sent = append(l.sent, s)
	one := []byte{letter(len(l.sent) - 1)}
	l.mu.Unlock()
	_, err := l.in.Write(one)
	return err
}

// listen takes the echoes of a lane until it breaks or is closed.
func (l *Lane) listen(r *run) {
	buffer := make([]byte, 4<<10)
	for {
		n, err := l.out.Read(buffer)
		now := time.Now()
		for _, b := range buffer[:n] {
			e, ok := l.came(b, now)
			if !ok {
				r.broken <- broken(l.Name, fmt.Sprintf("the echo differs from the bytes sent: %q", b))
				return
			}
			select {
			case r.echoes <- e:
			case <-r.over:
				return
			}
		}
		if err != nil {
			r.broken <- l.failed(err)
			return
		}
	}
}

// came returns the echo that a byte b from the other end completes; false if b is not the expected
// one.
func (l *Lane) came(b byte, now time.Time) (Echo, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.back == len(l.sent) || b != letter(l.back) {
		return Echo{}, false
	}
	s := l.sent[l.back]
	l.back++
	s.echo.Latency = now.Sub(s.due)
	return s.echo, true
}

// sent returns how many bytes have been sent in all sessions.
func (r *run) sent() (n int) {
	for _, l := range r.lanes {
		l.mu.Lock()
		n += len(l.sent)
		l.mu.Unlock()
	}
	return n
}

// rest reports the bytes that have come back by now, and those that did not.
func (r *run) rest(each func(Echo)) {
	for len(r.echoes) > 0 {
		each(<-r.echoes)
	}
	for _, l := range r.lanes {
		l.mu.Lock()
		for _, s := range l.sent[l.back:] {
			s.echo.Latency = Lost
			each(s.echo)
		}
		l.mu.Unlock()
	}
}
