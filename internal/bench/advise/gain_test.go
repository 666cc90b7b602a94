package advise

import (
	"math"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

func figureAt(v float64) rank.Figure {
	e := stats.Estimate{Log: math.Log(v), Err: 0.01, N: 9}
	return rank.Figure{Estimate: e, Shown: e.OrNil()}
}

// The cost of the servers is unknown for one cell: the clients are compared.
func TestGain(t *testing.T) {
	r := &rank.Ranking{By: rank.Throughput, Bulk: []rank.Cell{
		{Suite: alg.Suite{Cipher: "a", MAC: "m"}, Direction: record.Upload, Throughput: figureAt(300), Sides: rank.Sides{Client: figureAt(1), Server: figureAt(1), Total: figureAt(2)}},
		{Suite: alg.Suite{Cipher: "b", MAC: "m"}, Direction: record.Upload, Throughput: figureAt(100), Sides: rank.Sides{Client: figureAt(2), Total: figureAt(2)}},
	}}
	g := gainOf(r, r.Bulk[1], r.Bulk[0])
	if g.Verdict != stats.Better || g.Chance < 0.99 || g.Throughput.Value < 2.99 || g.Throughput.Value > 3.01 || g.Throughput.Lo > 2.95 || g.Throughput.Hi < 3.05 || math.Abs(g.Cost.Value-2) > 0.01 {
		t.Errorf("gain: %+v %+v", g.Throughput, g.Cost)
	}
}
