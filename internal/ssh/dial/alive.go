package dial

import (
	"sync/atomic"
	"time"
)

// keepAlive sends keepalive requests to a silent server, as ssh's ServerAliveInterval does, and
// closes the connection when no answer comes. It needs a goroutine only while it asks.
type keepAlive struct {
	link    *link
	every   time.Duration
	max     int
	missed  atomic.Int32 // questions without an answer
	expired atomic.Bool
	timer   *time.Timer
}

func (l *link) keepAlive(t *Target) {
	every, count := t.alive()
	k := &keepAlive{link: l, every: every, max: count}
	k.timer = time.AfterFunc(1<<62, k.tick)
	if l.alive = k; every > 0 {
		k.timer.Reset(every) // tick uses the timer, so it must be set before
	}
}

// tick asks; the answer, which may be a refusal, clears the count. While output waits for us, as in
// a pager, no answer would be read, and the silence is ours.
func (k *keepAlive) tick() {
	if within(k.link.Done(), 0) {
		return
	}
	if k.link.Stuck() {
		k.missed.Store(0)
		k.timer.Reset(k.every)
		return
	}
	if int(k.missed.Add(1)) > k.max {
		k.expired.Store(true)
		k.link.net.Close()
		return
	}
	k.timer.Reset(k.every)
	if _, _, err := k.link.SendRequest("keepalive@openssh.com", true, nil); err == nil {
		k.missed.Store(0)
	}
}
