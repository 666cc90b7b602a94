package rank_test

import (
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// What SSH exceeds limits nothing; the next that is near does.
func TestExceededIsNoLimit(t *testing.T) {
	q := func(v float64) *rank.Quantity { return &stats.Interval{Value: v, Lo: v, Hi: v, N: 3} }
	r := &rank.Ranking{Bulk: []rank.Cell{{Suite: alg.Suite{Cipher: "aes128-ctr"}, Basis: rank.Measured, Throughput: q(1e9), Client: q(1.1), Server: q(0.8)}}}
	for pipe, want := range map[float64]string{0.9e9: rank.ServerCPU, 1.05e9: record.PipeFlow} {
		machine := &record.File{Measurements: []record.Measurement{{Name: record.PipeFlow, Unit: record.BytesPerSecond, Value: pipe}}}
		if c := rank.CeilingsOf(r, machine); c.Limiting != want {
			t.Errorf("a pipe of %g: limiting is %q, want %q: %+v", pipe, c.Limiting, want, c.Rows)
		}
	}
}
