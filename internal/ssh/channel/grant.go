package channel

import (
	"time"

	"sshpace/internal/base/sched"
)

// grant is the window that we give a server. It grows to at most four times the amount that the
// path holds, so that not the window limits the speed: over 50 ms, 2 MiB are 40 MB/s.
//
// A server sends the first byte beyond an earlier limit at least one round trip after we have
// raised it, and exactly then if it had to wait for that.
type grant struct {
	size     uint32 // of the window
	allowed  uint32 // how much of it the server may still send
	taken    uint32 // received bytes that need no room any more, not granted again yet
	path     sched.Vegas
	raised   time.Time // zero: no limit is being watched
	before   uint32    // bytes that may still come within the limit before that
	inFlight uint32    // before, when the limit was raised
}

// MaxWindow holds 100 MB/s over 300 ms.
const MaxWindow = 64 << 20

// arrive counts n received bytes, and reports whether they were allowed.
func (g *grant) arrive(n int) bool {
	if n > int(g.allowed) {
		return false
	}
	g.allowed -= uint32(n)
	if g.raised.IsZero() {
		return true
	}
	if g.before >= uint32(n) {
		g.before -= uint32(n)
		return true
	}
	best := 2 * g.path.BestInFlight(int(g.inFlight), time.Since(g.raised)) // so it grows within few round trips
	g.raised = time.Time{}
	if size := uint32(min(best, MaxWindow)); size > g.size {
		g.taken += size - g.size
		g.size = size
	}
	return true
}

// mostExpected bounds the window that is granted before a server has shown its rate.
const mostExpected = 8 * window

// expect enlarges the window to the amount that the path may hold.
func (g *grant) expect(trip time.Duration) {
	if size := uint32(min(sched.UsualRate*trip.Seconds(), mostExpected)); size > g.size {
		g.taken += size - g.size
		g.size = size
	}
}

// take counts n bytes that need no room any more, and returns how much the server may send again:
// it is told in pieces that are worth a packet.
func (g *grant) take(n int) (more uint32) {
	g.taken += uint32(n)
	if g.taken < window/4 {
		return 0
	}
	if g.raised.IsZero() {
		g.raised, g.before, g.inFlight = time.Now(), g.allowed, g.allowed
	}
	more, g.taken = g.taken, 0
	g.allowed += more
	return more
}
