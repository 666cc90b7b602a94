package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// A kind of computation whose slices are slowed twice as much as those of another shows it;
// of a kind with few slices all together tell.
func TestSlowdowns(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var connections []*connection
	var samples []sample
	add := func(cipher, mac string, slices int, felt float64) {
		trial := record.Trial{Want: alg.Suite{Cipher: cipher, MAC: mac}, Workload: record.Sitting, Direction: record.Upload}
		s := sample{}
		for i := range slices {
			load := 1.0
			if i%5 == 0 {
				load = 0
			}
			s.logs = append(s.logs, 7+felt*load+0.01*random.NormFloat64())
			s.windows = append(s.windows, 0)
		}
		s.locate(lowQuantile, highQuantile)
		connections, samples = append(connections, &connection{trial: trial}), append(samples, s)
	}
	add("aes128-ctr", "umac-64@openssh.com", 100, 0.4)
	add("aes256-ctr", "umac-64-etm@openssh.com", 100, 0.4)
	add("3des-cbc", "hmac-md5", 200, 0.2)
	add("aes128-gcm@openssh.com", "", 10, 0.3)
	got := slowdowns(connections, samples)
	location := func(felt float64) float64 { return felt * 0.8 } // a fifth of the slices is free; of the others the highest are cut off
	for i, want := range []float64{location(0.4), location(0.4), location(0.2), location(0.4)} {
		if e := got[i]; math.Abs(e.Log-want) > 0.06 || e.Err <= 0 || e.Err > 0.05 {
			t.Errorf("connection %d: slowed by %.3f +- %.3f, want %.3f", i, e.Log, e.Err, want)
		}
	}
	if got[0] != got[1] {
		t.Errorf("one kind of computation was slowed by %v and %v", got[0], got[1])
	}
	if few := slowdowns(connections[3:], samples[3:]); few[0].N != 0 {
		t.Errorf("ten slices tell %v", few[0])
	}
}
