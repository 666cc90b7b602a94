package classic

import (
	"math"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// exactly is a figure that n connections agree on.
func exactly(v float64, n int) rank.Figure {
	e := stats.Estimate{Log: math.Log(v), Err: 1e-12, N: n}
	return rank.Figure{Estimate: e, Shown: e.OrNil()}
}

// 4 GiB at 1 GB/s and 60 ms of login; ChaCha20 renews its keys three times.
func TestMatrix(t *testing.T) {
	r := &rank.Ranking{
		Combinations: alg.Combinations{Total: 4, Bulk: 2, Kex: 2},
		Bulk: []rank.Cell{
			{Suite: alg.Suite{Cipher: "aes128-gcm@openssh.com"}, Basis: rank.Measured, Throughput: exactly(1e9, 3)},
			{Suite: alg.Suite{Cipher: "chacha20-poly1305@openssh.com"}, Basis: rank.Predicted, Throughput: exactly(5e8, 0)},
		},
		Kex: []rank.Exchange{
			{Name: "curve25519-sha256", Aliases: []string{"curve25519-sha256@libssh.org"}, Login: exactly(60e6, 5)},
			{Name: "diffie-hellman-group18-sha512", Login: exactly(160e6, 5)},
		},
	}
	m := matrixOf(r, "", 4<<30)
	if len(m.Rows) != 6 {
		t.Fatalf("%d rows; want 6", len(m.Rows))
	}
	if got := m.Rows[0].Seconds; math.Abs(got.Value-(4.294967296+0.06)) > 1e-9 || got.N != 3 {
		t.Errorf("fastest row %+v", got)
	}
	last := m.Rows[5]
	if want := 2*4.294967296 + 0.16 + 3*0.1; math.Abs(last.Seconds.Value-want) > 1e-9 || last.Basis != rank.Predicted {
		t.Errorf("slowest row %s %+v, want %.3f s", last.Suite, last.Seconds, want)
	}
}

// An exhaustive run of 40 combinations and the rebuilt seconds agree.
func TestExhaustiveAgrees(t *testing.T) {
	m := benchtest.Noisy(8)
	r := benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Auto)
	const size = 64 << 20
	f := benchtest.Copies(t, benchtest.Noisy(9))
	copies := map[alg.Suite]float64{}
	for _, c := range benchtest.Of(t, f, rank.Auto).Copies {
		copies[c.Suite] = c.Seconds.Value
	}
	if len(copies) != 2240 {
		t.Errorf("%d combinations copied, want 2240", len(copies))
	}
	var errs []float64
	for _, row := range matrixOf(r, record.Upload, size).Rows {
		if seconds, ok := copies[row.Suite]; ok && row.Suite.MAC != "" {
			errs = append(errs, math.Abs(row.Seconds.Value/seconds-1))
		}
	}
	if e := stats.Median(errs); e > 0.06 { // a single copy of the simulation has 6 % of noise
		t.Errorf("median error of %d predicted seconds is %.1f %%", len(errs), 100*e)
	}
}
