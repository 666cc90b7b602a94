package channel

import (
	"sync"
	"time"

	"sshpace/internal/base/sched"
)

// pace bounds the data in flight to a server within the window that it grants: sshd keeps data that
// a command has not read yet in one buffer, which it enlarges, clears and moves, so that 2 MiB
// there cost more than all other work on them.
type pace struct {
	limit    int  // limit of bytes in flight
	inFlight int  // bytes that were sent, and for which no room was made again
	least    int  // limit is never below it
	known    bool // with at least this much in flight the server makes room
	free     bool // nothing is bounded here: the window is that of another server than sshd
	vegas    sched.Vegas
	pieces   []piece // in flight, in their order
	stall    *time.Timer
}

// piece is data that was sent at once.
type piece struct {
	size     int
	inFlight int // bytes in flight with it
	sent     time.Time
}

const (
	// leastAhead is more than the amount that sshd waits for before it makes room again, three
	// packets (channels.c, channel_check_window), and is not mapped anew by malloc(3).
	leastAhead = 4 * maxPacket
	// mostOfSshd is more than any window that sshd opens a session with.
	mostOfSshd = 4 << 20
	// doubt is how long a server may make no room before it counts as waiting for more data: only
	// the amount that was in flight is known to be enough.
	doubt = 250 * time.Millisecond
	// doubtOfKnown is the same for one that has made room before.
	doubtOfKnown = 5 * time.Second
)

// granted takes the window that a server opens the channel with. Servers with larger windows than
// sshd's may make room only once most of one is used.
func (p *pace) granted(window uint32) { p.free = window > mostOfSshd }

// begin sets the first limit by the time of an answer, as far as that is known.
func (p *pace) begin(trip time.Duration) {
	if p.limit == 0 {
		p.limit = int(sched.UsualRate * trip.Seconds())
	}
}

// full reports whether nothing may be sent now.
func (p *pace) full() bool { return p.inFlight >= max(p.limit, p.least, leastAhead) }

// send counts data that leave.
func (p *pace) send(n int) {
	if p.free {
		return
	}
	p.inFlight += n
	p.pieces = append(p.pieces, piece{n, p.inFlight, time.Now()})
}

// arrive counts room for n bytes that a server has made again.
func (p *pace) arrive(n int) {
	if !p.known {
		p.known, p.least = true, p.inFlight
	}
	if p.stall != nil {
		p.stall.Reset(doubtOfKnown)
	}
	var last piece
	for n > 0 && len(p.pieces) > 0 {
		first := &p.pieces[0]
		took := min(n, first.size)
		n, first.size, p.inFlight = n-took, first.size-took, p.inFlight-took
		if first.size == 0 {
			last, p.pieces = *first, p.pieces[1:]
		}
	}
	if last.inFlight > 0 {
		p.limit = p.vegas.BestInFlight(last.inFlight, time.Since(last.sent)) + leastAhead
	}
}

// wait waits for room, whose lock the caller holds.
func (p *pace) wait(room *sync.Cond) {
	if p.full() && p.stall == nil {
		timeout := doubt
		if p.known {
			timeout = doubtOfKnown
		}
		var stall *time.Timer
		stall = time.AfterFunc(timeout, func() {
			room.L.Lock()
			defer room.L.Unlock()
			if p.stall != stall {
				return
			}
			p.stall = nil
			p.known, p.least = false, 2*max(p.least, leastAhead)
			room.Broadcast()
		})
		p.stall = stall
	}
	room.Wait()
	if !p.full() {
		p.stop()
	}
}

// stop ends the pacing.
func (p *pace) stop() {
	if p.stall != nil {
		p.stall.Stop()
		p.stall = nil
	}
}
