package output

import (
	"cmp"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/sys/file"
)

// order is the order of hosts in sorted; the worst come last, next to the prompt.
type order string

// The orders.
const (
	byHost order = "host" // as they were named
	byExit order = "exit" // successful ones, then by exit code, then those that did not run
	byTime order = "time" // the slowest last
)

// sorted holds everything back until the run ends, and then passes it to another sink host by host,
// in order; without an order, until each host ends. The output of a host keeps its order. Memory is
// bounded: the rest goes to a file.
type sorted struct {
	fleet.Nothing
	sink   fleet.Sink
	order  order
	failed bool // only failed hosts are passed on
	store  file.Store
	live   PerHost[held]
	ended  []*held
}

// held is a host's output: each stream, and how they alternate.
type held struct {
	streams [2]file.Content
	turns   []turn
	result  fleet.Result
	so      fleet.Summary
}

// turn is output of one stream, until output of the other one.
type turn struct {
	stream fleet.Stream
	size   int64
}

var _ fleet.Sink = (*sorted)(nil)

// newSorted passes everything to sink in order, with failed only failures; Begin and Batch are
// passed on at once.
func newSorted(sink fleet.Sink, order order, failed bool) *sorted {
	return &sorted{sink: sink, order: order, failed: failed, store: file.Store{What: "output", Limit: outputMemory}}
}

// Begin passes the beginning of the run to the sink.
func (s *sorted) Begin(start fleet.Start) error { return s.sink.Begin(start) }

// Batch passes the beginning of a batch to the sink.
func (s *sorted) Batch(b fleet.Batch) error { return s.sink.Batch(b) }

// Output keeps a piece of a host's output until it is the host's turn.
func (s *sorted) Output(e fleet.Event) error {
	h := s.live.Of(e.Index)
	if last := len(h.turns) - 1; last < 0 || h.turns[last].stream != e.Stream {
		h.turns = append(h.turns, turn{stream: e.Stream})
	}
	c := &h.streams[e.Stream]
	before := c.Size
	err := s.store.Add(c, e.Data)
	h.turns[len(h.turns)-1].size += c.Size - before
	return Loss(err)
}

// Done keeps the result of a host for End, or passes it to the sink if hosts need no order.
func (s *sorted) Done(r fleet.Result, so fleet.Summary) error {
	taken := s.live.Take(r.Index)
	h := &taken
	h.result, h.so = r, so
	well := r.Status() == fleet.OK && r.Incomplete == ""
	if s.order != "" && !(s.failed && well) {
		s.ended = append(s.ended, h)
		return nil
	}
	var err error
	if !well {
		err = s.replay(h)
	}
	for i := range h.streams {
		s.store.Drop(&h.streams[i])
	}
	return err
}

// End passes all that was kept to the sink, in order.
func (s *sorted) End(so fleet.Summary) error {
	slices.SortStableFunc(s.ended, s.compare)
	var err error
	for _, h := range s.ended {
		if err = cmp.Or(s.replay(h), err); err != nil && !isLoss(err) {
			break
		}
	}
	return errors.Join(err, s.sink.End(so), s.store.Close())
}

func (s *sorted) replay(h *held) error {
	var loss error
	readers := [2]io.Reader{s.store.Reader(&h.streams[0]), s.store.Reader(&h.streams[1])}
	name := h.result.Host.String()
	var buf [32 << 10]byte
	for _, t := range h.turns {
		for left := t.size; left > 0; {
			n, err := readers[t.stream].Read(buf[:min(left, int64(len(buf)))])
			if n > 0 {
				lost := s.sink.Output(fleet.Event{Index: h.result.Index, Host: name, Stream: t.stream, Data: buf[:n]})
				if lost != nil && !isLoss(lost) {
					return lost
				}
				loss = cmp.Or(loss, lost)
			}
			if left -= int64(n); err != nil && left > 0 {
				return Loss(err)
			}
		}
	}
	return cmp.Or(s.sink.Done(h.result, h.so), loss)
}

func (s *sorted) compare(a, b *held) int {
	switch s.order {
	case byExit:
		return cmp.Or(cmp.Compare(severity(&a.result), severity(&b.result)), cmp.Compare(a.result.Exit, b.result.Exit),
			strings.Compare(Explain(&a.result), Explain(&b.result)), cmp.Compare(a.result.Index, b.result.Index))
	case byTime:
		return cmp.Or(cmp.Compare(took(&a.result), took(&b.result)), cmp.Compare(a.result.Index, b.result.Index))
	}
	return cmp.Compare(a.result.Index, b.result.Index)
}

// severity orders results without an exit code after those with one.
func severity(r *fleet.Result) int {
	status := int(r.Status()) * 2
	if r.Class != fleet.NoFailure {
		status++
	}
	return status
}

// took returns the duration of a host, without waits for our own limits, unless its server turned
// us away.
func took(r *fleet.Result) time.Duration {
	if r.Attempts <= 1 {
		return r.Elapsed - r.Waited
	}
	return r.Elapsed
}
