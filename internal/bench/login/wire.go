package login

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// Traffic records the packets through a relay during one login.
type Traffic struct {
	mu      sync.Mutex
	conn    int // of the relay, from which these packets come
	packets []packet
}

type packet struct {
	dir     relay.Direction
	arrived time.Time
	left    time.Time
	bytes   int
}

// Watch is for relay.Options. The packets are those of the newest connection: the last one of an
// older login may come late, and those of a master at any time.
func (t *Traffic) Watch(s relay.Seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Conn > t.conn {
		t.conn, t.packets = s.Conn, nil
	}
	if len(s.Data) > 0 && s.Conn == t.conn {
		t.packets = append(t.packets, packet{s.Dir, s.Arrived, s.Left, len(s.Data)})
	}
}

// Reset forgets all packets.
func (t *Traffic) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.packets = nil
}

// Wire summarizes the packets of one login.
type Wire struct {
	Up     int64               `json:"bytes_up"`
	Down   int64               `json:"bytes_down"`
	Stalls []record.LoginStall `json:"stalls"`
}

// The delay of an acknowledgement in Linux is 40 ms (TCP_DELACK_MIN); waits caused by it lie within
// these bounds.
const (
	ShortestStall = 35 * time.Millisecond
	longestStall  = 60 * time.Millisecond
)

// Wire summarizes the packets.
func (t *Traffic) Wire() Wire {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := Wire{Stalls: []record.LoginStall{}}
	all := slices.SortedStableFunc(slices.Values(t.packets), func(a, b packet) int { return a.left.Compare(b.left) })
	for i, p := range all {
		if p.dir == relay.Up {
			w.Up += int64(p.bytes)
		} else {
			w.Down += int64(p.bytes)
		}
		if i == 0 {
			continue
		}
		before := all[i-1]
		if gap := p.arrived.Sub(before.arrived); p.dir == before.dir && gap >= ShortestStall && gap <= longestStall {
			w.Stalls = append(w.Stalls, stall(p, gap, all[0].left))
		}
	}
	return w
}

// stall describes a pause between two packets of one side as a wait of Nagle's algorithm for a
// delayed acknowledgement: the side has sent, gets nothing, and continues to send.
func stall(p packet, gap time.Duration, first time.Time) record.LoginStall {
	side, other := "client", "server"
	if p.dir == relay.Down {
		side, other = other, side
	}
	return record.LoginStall{Side: side, AtNS: p.arrived.Sub(first) - gap, WallNS: gap,
		Why: fmt.Sprintf("Nagle's algorithm on the %s waits for a delayed acknowledgement by the %s", side, other)}
}
