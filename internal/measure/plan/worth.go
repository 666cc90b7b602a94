package plan

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// worth knows what the turns so far have shown, and where another one helps
// most.
type worth struct {
	spec Spec
	seen map[record.Cell]int
}

func newWorth(spec Spec) worth { return worth{spec: spec, seen: map[record.Cell]int{}} }

// add takes a slice.
func (w *worth) add(t record.Trial, s record.Slice) { w.seen[t.Cell()]++ }

func (w *worth) empty() bool                               { return len(w.seen) == 0 }
func (w *worth) cells() int                                { return len(w.seen) }
func (w *worth) ranked() bool                              { return false }
func (w *worth) leaders() []Leader                         { return nil }
func (w *worth) precise(limit float64) bool                { return false }
func (w *worth) wanted(open []*seat, n int) []record.Trial { return nil }

var _ alg.Suite
