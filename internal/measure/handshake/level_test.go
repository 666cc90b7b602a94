package handshake

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"sshpace/internal/record"
)

// disturbed makes logins of kinds in rounds, on a machine that is slowed for a few
// logins at a time; kind k costs its client 10+k ms and its server 20+k.
func disturbed(random *rand.Rand, kinds, rounds int) (of []int, logins []*observed) {
	weather := 0.0
	for range rounds {
		for _, k := range random.Perm(kinds) {
			weather = 0.8*weather + 0.6*random.NormFloat64()
			took := func(ms int) time.Duration {
				return time.Duration(float64(ms) * 1e6 * math.Exp(0.15*weather+0.04*random.NormFloat64()))
			}
			of = append(of, k)
			logins = append(logins, &observed{Login: &Login{ClientCPU: took(10 + k)}, server: took(20 + k)})
		}
	}
	return of, logins
}

// TestLevel: on a machine that is disturbed again and again, what is known of a
// kind's CPU time is narrower by a third with what other logins tell, and the
// intervals hold what the kind costs in relation to all others.
func TestLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	const kinds, rounds, runs = 30, 10, 20
	held, width := 0, 0.0
	for range runs {
		of, logins := disturbed(random, kinds, rounds)
		results := summarized(make([]Case, kinds), alikeIn(make([]record.LoginKind, kinds)), of, logins)
		common := 0.0
		for k, r := range results {
			common += math.Log(r.ClientCPU.Value/float64(10+k)/1e6) / kinds
		}
		for k, r := range results {
			truth := float64(10+k) * 1e6 * math.Exp(common)
			if r.ClientCPU.Lo <= truth && truth <= r.ClientCPU.Hi {
				held++
			}
			width += (r.ClientCPU.Hi - r.ClientCPU.Lo) / 2 / r.ClientCPU.Value / kinds / runs
		}
	}
	if width > 0.075 { // it is 0.11 without
		t.Errorf("intervals are +-%.1f %% wide", 100*width)
	}
	if part := float64(held) / kinds / runs; part < 0.92 {
		t.Errorf("%.0f %% of the intervals hold what is true", 100*part)
	}
}

// TestLevelLeavesAlone: a kind that costs more is not taken for a disturbance, and
// where nothing is disturbed nothing moves.
func TestLevelLeavesAlone(t *testing.T) {
	var of []int
	var logins []*observed
	for range 6 {
		for k := range 5 {
			cpu := 10 * time.Millisecond
			if k == 3 {
				cpu *= 8
			}
			of = append(of, k)
			logins = append(logins, &observed{Login: &Login{ClientCPU: cpu}, server: cpu})
		}
	}
	for k, r := range summarized(make([]Case, 5), alikeIn(make([]record.LoginKind, 5)), of, logins) {
		want := 10e6
		if k == 3 {
			want = 80e6
		}
		if math.Abs(r.ClientCPU.Value/want-1) > 1e-6 || math.Abs(r.ServerCPU.Value/want-1) > 1e-6 {
			t.Errorf("kind %d: %v", k, r.ClientCPU)
		}
	}
}
