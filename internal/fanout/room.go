package fanout

import (
	"context"

	"sshpace/internal/ssh/admit"
)

// Room bounds the hosts of runs that go on at once: how many are connected or connecting, and who
// may log in now.
type Room struct {
	gate  *admit.Gate
	slots chan struct{} // one per host
	outer *Room         // whose slots they take, too; nil: none
}

// NewRoom makes a room for several runs; see Params.Fanout. perHost is the need of descriptors.
func NewRoom(fanout, perHost int) *Room { return newRoom(nil, fanout, maxSlots, perHost, 0) }

func newRoom(r *Resources, fanout, hosts, perHost, reserved int) *Room {
	if r == nil {
		r = ownResources()
	}
	return &Room{gate: admit.New(admit.Limits{Most: fanout}), slots: make(chan struct{}, r.slots(fanout, hosts, perHost, reserved))}
}

// Within makes a room of at most fanout hosts inside r; 0 is r itself.
func (r *Room) Within(fanout int) *Room {
	if fanout == 0 {
		return r
	}
	return &Room{gate: r.gate, slots: make(chan struct{}, fanout), outer: r}
}

// Size returns how many hosts have room.
func (r *Room) Size() int { return cap(r.slots) }

// enter waits for a slot; it returns false if ctx ends.
func (r *Room) enter(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case r.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if r.outer != nil && !r.outer.enter(ctx) {
		<-r.slots
		return false
	}
	return true
}

func (r *Room) leave() {
	if r.outer != nil {
		r.outer.leave()
	}
	<-r.slots
}
