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
	from, ok := r.Find(alg.Suite{Cipher: "b", MAC: "m", Kex: "ignored"}, record.Upload)
	to, ok2 := r.Find(alg.Suite{Cipher: "a", MAC: "m"}, record.Upload)
	if _, wrong := r.Find(alg.Suite{Cipher: "a", MAC: "m"}, record.Download); !ok || !ok2 || wrong {
		t.Fatal("cells are not found by name and direction")
	}
	g := gainOf(r, from, to)
	if g.Verdict != stats.Better || g.Chance < 0.99 || g.Throughput.Value < 2.99 || g.Throughput.Value > 3.01 || g.Throughput.Lo > 2.95 || g.Throughput.Hi < 3.05 || math.Abs(g.Cost.Value-2) > 0.01 {
		t.Errorf("gain: %+v %+v", g.Throughput, g.Cost)
	}
}
