package latency

import (
	"context"
	"crypto/rand"
	"io"
	"sync/atomic"
	"time"

	"sshpace/internal/bench/bed"
)

// Load is a bulk transfer over its own connection, that flows or rests.
type Load struct {
	lane    *Lane
	flowing chan bool
	bytes   atomic.Int64
	busy    atomic.Int64 // ns that it flowed
	ended   chan struct{}
	err     error // once it has ended
}

// Directions of a load.
const (
	Upload   = "upload"
	Download = "download"
)

// loads holds the commands for each direction.
var loads = map[string]laneOptions{
	Upload:   {Upload, nil, "no", "", "cat >/dev/null"},
	Download: {Download, nil, "no", "", "cat /dev/zero"},
}

// OpenLoad logs in for a transfer, which rests. The caller closes it.
func OpenLoad(ctx context.Context, b bed.Bed, direction string) (*Load, error) {
	lane, err := open(ctx, b, loads[direction])
	if err != nil {
		return nil, err
	}
	l := &Load{lane: lane, flowing: make(chan bool, 1), ended: make(chan struct{})}
	move := l.upload
	if direction == Download {
		move = l.download
	}
	go l.carry(move)
	return l, nil
}

// Flow lets the transfer flow or rest. It does not wait for bytes in flight.
func (l *Load) Flow(on bool) {
	if l == nil {
		return
	}
	select {
	case <-l.flowing: // nobody has taken the last word yet
	default:
	}
	l.flowing <- on
}

// Rate returns the bytes per second while it flowed; 0 where it never did.
func (l *Load) Rate() float64 {
	if l.busy.Load() == 0 {
		return 0
	}
	return float64(l.bytes.Load()) / time.Duration(l.busy.Load()).Seconds()
}

// Broken returns the reason if the transfer has ended by itself; otherwise nil.
func (l *Load) Broken() error {
	if l == nil {
		return nil
	}
	select {
	case <-l.ended:
		return l.lane.failed(l.err)
	default:
		return nil
	}
}

// Close ends the transfer.
func (l *Load) Close() {
	l.lane.Close()
	close(l.flowing)
	<-l.ended
}

// carry moves blocks while the transfer flows.
func (l *Load) carry(move func([]byte) (int, error)) {
	defer close(l.ended)
	block := make([]byte, 64<<10)
	_, _ = rand.Read(block) // nothing that compression could make less of
	for on := range l.flowing {
		for on {
			began := time.Now()
			n, err := move(block)
			l.bytes.Add(int64(n))
			l.busy.Add(int64(time.Since(began)))
			if err != nil {
				l.err = err
				return
			}
			select {
			case next, open := <-l.flowing:
				on = next && open
			default:
			}
		}
	}
}

func (l *Load) upload(block []byte) (int, error) { return l.lane.in.Write(block) }

func (l *Load) download(block []byte) (int, error) { return io.ReadFull(l.lane.out, block) }
