//go:build linux

package relay

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// capacity is the size of a block, and of one read.
	capacity = 64 << 10
	// scrap is the size of a rest of a block that is not worth another read.
	scrap = 4 << 10
	// few bytes are a conversation, not a transfer.
	few = 8 * segment
	// lull is how long the bytes of a transfer gather before they are due: waking up for each write
	// would take the sender's core away again and again.
	lull = together / 2
)

// block is the memory of chunks that are in flight together.
type block [capacity]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

// lane is one direction of a connection. It is one punctual thread that reads, writes, and sleeps
// until its next action: handed over between threads, or by Go's scheduler, bytes would be late by
// tenths of a millisecond.
type lane struct {
	connection *connection
	dir        Direction
	from       int
	to         *atomic.Int32 // nowhere until there is a connection
	wake       int           // eventfd(2): there is a connection, or it is over
	schedule   *schedule
	control    []byte // room for stamps

	waiting  fifo
	block    *block // the next bytes go here, from filled on
	filled   int
	bulk     bool      // the latest read was as large as in a transfer
	ended    bool      // nothing more comes
	stuffed  bool      // the reader at the other end has no room
	roomy    time.Time // it has had some since then
	admitted time.Time // there has been room in waiting since then
	again    time.Time // nothing is read until then
	last     time.Time // due time of the last chunk that left
}

// newLane returns a lane whose bytes can come since then.
func newLane(c *connection, dir Direction, from int, to *atomic.Int32, since time.Time) (*lane, error) {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, err
	}
	schedule := newSchedule(c.relay.opts.Path, dir, &c.relay.links[dir])
	return &lane{connection: c, dir: dir, from: from, to: to, wake: wake, schedule: schedule, control: stamped(from), admitted: since}, nil
}

// rouse wakes the lane to look for news.
func (l *lane) rouse() { _, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// run moves bytes until the direction has ended or the connection is over.
func (l *lane) run() {
	for !l.connection.cut.Load() {
		delivered, over := l.deliver()
		if over {
			return
		}
		if !l.fetch() && !delivered {
			l.wait()
		}
	}
}

// open reports whether more can be read, and lulled whether that can wait.
func (l *lane) open() bool   { return !l.ended && l.waiting.held < l.schedule.room() }
func (l *lane) lulled() bool { return time.Until(l.again) > 0 }

// fetch reads once, if there is data and room for it.
func (l *lane) fetch() bool {
	if !l.open() || l.lulled() {
		return false
	}
	if l.block == nil {
		l.block, l.filled = blocks.Get().(*block), 0
	} else if l.waiting.empty() {
		l.filled = 0
	}
	if l.connection.relay.opts.Prompt && !l.bulk {
		acknowledge(l.from)
	}
	into := l.block[l.filled:min(capacity, l.filled+l.schedule.piece())]
	n, control, err := receive(l.from, into, l.control)
	if err == unix.EAGAIN {
		if l.bulk && l.connection.relay.opts.Path.Delay > 0 {
			l.bulk, l.again = false, time.Now().Add(lull)
		}
		return false
	}
	if err != nil {
		l.connection.reset()
		return true
	}
	l.bulk = n > segment
	l.ended = n == 0
	data, fault := l.spared(into[:n])
	if l.ended || len(data) > 0 && !l.connection.relay.frozen.Load() {
		l.accept(data, stampIn(control, time.Now()))
	}
	if fault != nil {
		l.fail(fault)
	}
	return true
}

// fail ends the connection for the client, if the fault has an end to see.
func (l *lane) fail(f *Fault) {
	switch f.How {
	case Finish:
		l.ended = true
		l.accept(nil, time.Now().Add(f.Later))
	case Reset:
		time.AfterFunc(f.Later, l.connection.reset)
	}
}

// accept puts bytes into flight. They cannot have been there before there was room.
func (l *lane) accept(data []byte, arrived time.Time) {
	if arrived.Before(l.admitted) {
		arrived = l.admitted
	}
	p := chunk{data: data, arrived: arrived, due: l.schedule.due(arrived, len(data))}
	if l.filled += len(data); capacity-l.filled < scrap {
		p.last, l.block = l.block, nil
	}
	l.waiting.put(p)
}

// deliver writes the chunks that are due; the lane is over after the end, or a failure.
func (l *lane) deliver() (delivered, over bool) {
	to := int(l.to.Load())
	for to != nowhere && !l.stuffed && !l.waiting.empty() && time.Until(l.waiting.first().due) <= 0 {
		p := l.waiting.first()
		left, err := p.leave(to)
		if err == unix.EAGAIN {
			l.stuffed = true
			return delivered, false
		}
		if err != nil {
			l.connection.reset()
			return true, true
		}
		if delivered = true; left {
			over = len(p.data) == 0
			l.delivered(p)
		}
	}
	return delivered, over
}

// delivered reports a chunk that has left, and forgets it.
func (l *lane) delivered(p *chunk) {
	if watch := l.connection.relay.opts.Watch; watch != nil {
		watch(Seen{l.connection.number, l.dir, p.arrived, p.due, time.Now(), p.due.Before(l.roomy), p.data})
	}
	if p.last != nil {
		blocks.Put(p.last)
	}
	l.last = p.due
	full := !l.open()
	l.waiting.take()
	if full {
		l.admitted = time.Now()
	}
}

const forever = time.Duration(math.MaxInt64)

// wait waits until there is data to read, room to write, or a chunk due.
func (l *lane) wait() {
	files := [...]unix.PollFd{{Fd: int32(l.wake), Events: unix.POLLIN}, {Fd: nowhere, Events: unix.POLLIN}, {Fd: nowhere, Events: unix.POLLOUT}}
	roused, writable := &files[0], &files[2]
	lulled := l.open() && l.lulled()
	if l.open() && !lulled {
		files[1].Fd = int32(l.from)
	}
	to := l.to.Load()
	rest := forever
	if lulled {
		rest = time.Until(l.again)
	}
	if l.stuffed {
		writable.Fd = to
	} else if to != nowhere && !l.waiting.empty() {
		rest = min(rest, l.sleep())
	}
	if rest <= 0 {
		return
	}
	var limit *unix.Timespec
	if rest < forever {
		limit = new(unix.NsecToTimespec(int64(rest)))
	}
	if _, err := unix.Ppoll(files[:], limit, nil); err != nil {
		return // a signal: look again
	}
	if writable.Revents != 0 {
		l.stuffed, l.roomy = false, time.Now()
	}
	if roused.Revents != 0 {
		_, _ = unix.Read(l.wake, make([]byte, 8))
	}
}

// sleep returns the time until the next action. A lane with a few bytes that somebody waits for
// stays awake in the end; with many the core is better left to others.
func (l *lane) sleep() time.Duration {
	due := l.waiting.first().due
	rest := time.Until(due)
	if l.waiting.held <= few {
		rest -= early(due, l.last)
	}
	return rest
}
