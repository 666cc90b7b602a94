package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Of 0 to 19 the location averages those from the 5 % to the 85 % quantile: 1 to
// 16. Winsorised at these ends they are 1, 1 to 16 and 16 three times. Those up to the 25 %
// quantile are 0 to 4, and all others are 4 then.
func TestLocation(t *testing.T) {
	s := sample{}
	for i := range 20 {
		s.logs = append(s.logs, float64(19-i))
	}
	s.locate(lowQuantile, highQuantile)
	near(t, "location", s.Mean, 8.5, 1e-12)
	winsorised := []float64{1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 16, 16, 16}
	near(t, "error", s.err, math.Sqrt(stats.Variance(winsorised)/20)/0.8, 1e-12)
	s.locate(0, 0.25)
	near(t, "of the calm quarter", s.Mean, 2, 1e-12)
	calm := append([]float64{0, 1, 2, 3}, slices.Repeat([]float64{4}, 16)...)
	near(t, "error", s.err, math.Sqrt(stats.Variance(calm)/20)/0.25, 1e-12)
	near(t, "of one value", location([]float64{3}), 3, 0)
	near(t, "of none", location(nil), 0, 0)
	near(t, "weighted median", weightedMedian([]float64{5, 1, 9}, []float64{1, 1, 3}), 9, 0)
	near(t, "its error", medianError([]float64{-1, 0, 1}, []float64{4, 4, 4}, 0), math.Sqrt(math.Pi/2/12)*2*1.4826, 1e-4)
}

// turns makes slices of connections 1, 2, ... in turn, in a new order in every round; what gives the payload and
// CPU time of the client in ns for the kth slice of one.
func turns(connections, rounds int, what func(id, k int) (bytes, ns float64)) (map[int]record.Trial, []record.Slices) {
	trials := map[int]record.Trial{}
	for id := 1; id <= connections; id++ {
		trials[id] = record.Trial{ID: id, Workload: record.Sitting, Want: alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha1"}, Direction: record.Upload}
	}
	batch := record.Slices{Sitting: 1}
	order := rand.New(rand.NewPCG(1, 1))
	for k := range rounds {
		for _, i := range order.Perm(connections) {
			id := 1 + i
			bytes, ns := what(id, k)
			if bytes > 0 {
				cpu := time.Duration(ns)
				batch.Slices = append(batch.Slices, record.Slice{Trial: id, Round: k + 1, WallNS: 2 * cpu, Bytes: unit.Bytes(bytes), ClientCPUNS: &cpu, ServerCPUNS: &cpu})
			}
		}
	}
	return trials, cutInto(batch, 300)
}

// cutInto cuts a batch into some of n slices.
func cutInto(batch record.Slices, n int) []record.Slices {
	var out []record.Slices
	for part := range slices.Chunk(batch.Slices, n) {
		out = append(out, record.Slices{Sitting: batch.Sitting, Slices: part})
	}
	return out
}

// Each slice takes 100 us besides 2 ns per byte; one in five is five times as
// long. What is left is 2 ns per byte for the client, 4 for both sides.
func TestExcessIsTakenOut(t *testing.T) {
	s := SittingsOf(turns(8, 60, func(id, k int) (float64, float64) {
		bytes := float64(500_000 + 50_000*id)
		if (k+id)%5 == 0 {
			bytes *= 5
		}
		return bytes, 100_000 + 2*bytes
	}))
	near(t, "excess of the client", s.Excess[client].NS, 100_000, 1)
	near(t, "its share of 2.61 ms + 100 us on the mean", s.Excess[client].Share, 0.1/2.71, 0.0005)
	near(t, "excess of both", s.Excess[total].NS, 200_000, 2)
	for _, c := range s.Connections {
		near(t, "client", c.Client.Value(), 2, 1e-4)
		near(t, "both", c.Total.Value(), 4, 1e-4)
		near(t, "wall", c.Wall.Value(), 4, 1e-4)
		near(t, "slices", float64(c.Client.N), 60, 0)
	}
}

// Slices are brief and three times as long by turns, and the machine slows half of them by a
// quarter: the excess is still what both have.
func TestExcessOfTwoLengths(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	s := SittingsOf(turns(60, 80, func(id, k int) (float64, float64) {
		bytes := float64(500_000 + 5_000*id)
		if (k+id)%2 == 0 {
			bytes /= 3
		}
		return bytes, (70_000 + 2*bytes) * math.Exp(0.02*random.NormFloat64()+0.22*float64(random.IntN(2)))
	}))
	near(t, "excess of the client", s.Excess[client].NS, 70_000, 3_000)
	if e := s.Excess[client]; e.Err < 300 || e.Err > 2_000 {
		t.Errorf("its error is %.0f ns", e.Err)
	}
}

// Where slices have steady parts, nothing else tells throughput, and nothing is taken off.
// What both sides cost side by side is not what they cost otherwise.
func TestThroughputIsThatOfSteadyParts(t *testing.T) {
	trials, batches := turns(20, 40, func(int, int) (float64, float64) { return 500_000, 1e6 })
	for b := range batches {
		for i := range batches[b].Slices {
			s := &batches[b].Slices[i]
			if s.Long = s.Round%4 == 0; s.Long && s.Trial > 2 {
				cpu, dear := 10*time.Millisecond, 15*time.Millisecond
				s.Steady = &record.Steady{WallNS: 11 * time.Millisecond, Bytes: 4_000_000, ClientCPUNS: &cpu, ServerCPUNS: &cpu}
				s.ClientCPUNS, s.WallNS = &dear, time.Second
			}
		}
	}
	for _, c := range SittingsOf(trials, batches).Connections {
		near(t, "client", c.Client.Value(), 2, 1e-3)
		if c.Trial.ID <= 2 {
			near(t, "throughput of one without", float64(c.Wall.N), 0, 0)
			continue
		}
		near(t, "wall", c.Wall.Value(), 2*1.1, 1e-3)
		near(t, "steady parts", float64(c.Wall.N), 10, 0)
	}
}

// takeSteady gives slices of one in so many rounds a steady part, in which either side takes
// 10 ms of CPU time, and wall says how long that was.
func takeSteady(batches []record.Slices, every int, wall func(*record.Slice) time.Duration) {
	for b := range batches {
		for i := range batches[b].Slices {
			s := &batches[b].Slices[i]
			if s.Long = s.Round%every == 0; s.Long {
				cpu := 10 * time.Millisecond
				s.Steady = &record.Steady{WallNS: wall(s), Bytes: 4_000_000, ClientCPUNS: &cpu, ServerCPUNS: &cpu}
			}
		}
	}
}

// A tenth of the steady parts takes twice as long, for both sides had one CPU, and one was
// stopped for minutes: a long transfer has its share of the former, and nothing of the latter.
func TestLongTransfersLastAsLongAsTheirParts(t *testing.T) {
	trials, batches := turns(50, 40, func(int, int) (float64, float64) { return 500_000, 1e6 })
	takeSteady(batches, 4, func(s *record.Slice) time.Duration {
		switch {
		case s.Trial%10 == 0:
			return 22 * time.Millisecond
		case s.Trial == 1 && s.Round == 4:
			return 110 * time.Second
		}
		return 11 * time.Millisecond
	})
	var logs []float64
	for _, c := range SittingsOf(trials, batches).Connections {
		logs = append(logs, c.Wall.Log)
	}
	near(t, "wall", math.Exp(stats.Mean(logs)), 2*1.1*1.1, 0.02)
}

// Of 30 cells with two steady parts each, a tenth of these took half as long again: that is
// nobody's own, and in the figures of all. A cell with twelve that take a fifth longer is slower.
func TestFewPartsShareTheirLuck(t *testing.T) {
	trials, batches := turns(36, 40, func(int, int) (float64, float64) { return 500_000, 1e6 })
	for id, trial := range trials {
		trial.Want = alg.Suite{Cipher: "aes128-ctr", MAC: fmt.Sprint("m", min(id, 31))}
		trials[id] = trial
	}
	takeSteady(batches, 20, func(s *record.Slice) time.Duration {
		switch {
		case s.Trial > 30:
			return 12 * time.Millisecond
		case s.Trial%5 == 0 && s.Round == 20:
			return 15 * time.Millisecond
		}
		return 10 * time.Millisecond
	})
	for _, c := range SittingsOf(trials, batches).Connections {
		want := 2 * 1.05
		if c.Trial.ID > 30 {
			want = 2 * 1.2
		}
		near(t, c.Cell.Suite.MAC, c.Wall.Value(), want, 0.01)
	}
}

// The machine is a fifth slower in the second half, in which one connection has
// most of its turns: it is no costlier than the others.
func TestLevelOfTheMachineIsShared(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	s := SittingsOf(turns(20, 200, func(id, k int) (float64, float64) {
		if id == 1 && k < 100 && k%5 > 0 {
			return 0, 0
		}
		cost := 1e6 * math.Exp(0.02*random.NormFloat64())
		if k >= 100 {
			cost *= 1.2
		}
		return 1e6, cost
	}))
	near(t, "the one that was measured late", s.Connections[0].Client.Log-s.Connections[1].Client.Log, 0, 0.01)
}

// Two kinds of cells cost the same while the other guests are calm, and these slow one kind by
// 60 % and the other by 20 % in some of their slices, now in half of them and then in a few: what
// is compared moves little, and the level of all is what it usually was.
func TestCalmSlicesAreCompared(t *testing.T) {
	run := func(disturbed float64) (aes, des, slowed float64) {
		random := rand.New(rand.NewPCG(5, 1))
		trials, batches := turns(20, 100, func(id, _ int) (float64, float64) {
			felt := 0.6 - 0.4*float64(id%2)
			if random.Float64() > disturbed {
				felt = 0
			}
			return 1e6, 1e6 * math.Exp(felt+0.03*random.NormFloat64())
		})
		for id, trial := range trials {
			trial.Want.Cipher = []string{"aes128-ctr", "3des-cbc"}[id%2]
			trials[id] = trial
		}
		var logs [2]float64
		s := SittingsOf(trials, batches)
		for _, c := range s.Connections {
			logs[c.Trial.ID%2] += c.Client.Log / 10
			slowed += c.slowed[client].Log / 20
		}
		return logs[0], logs[1], slowed
	}
	aes, des, slowed := run(0.5)
	calmAES, calmDES, _ := run(0.05)
	near(t, "kinds that cost the same, beside busy guests", aes-des, 0, 0.02)
	near(t, "beside calm ones", calmAES-calmDES, 0, 0.005)
	near(t, "level of all", (aes+des)/2, 0.16, 0.04) // 0.2 but for the tails
	if slowed < 0.15 {
		t.Errorf("slowed by %.3f, want about 0.2 more than nothing", slowed)
	}
}

// Slices that are independent have errors as large as they say; where fifty in a
// row of a connection are disturbed together, the errors are several times larger.
func TestInflation(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 1))
	run := func(together int) float64 {
		samples := make([]sample, 30)
		for i := range samples {
			level := 0.0
			for k := range 400 {
				if k%together == 0 {
					level = random.NormFloat64()
				}
				samples[i].logs = append(samples[i].logs, level)
				samples[i].windows = append(samples[i].windows, k/25)
			}
			samples[i].locate(lowQuantile, highQuantile)
		}
		all, _ := courses(samples, 16)
		return inflation(all)
	}
	near(t, "independent", run(1), 1.05, 0.2)
	if f := run(50); f < 10 {
		t.Errorf("fifty slices are one: the variance is %.1f times as large, want more than 10 times", f)
	}
}

// 100 turns of the probe take 1 to 100 ns per byte: the median is 50.5, the 5 %
// quantile 5.95.
func TestProbe(t *testing.T) {
	trials := map[int]record.Trial{1: {ID: 1, Workload: record.Probe}}
	var batch record.Slices
	for i := range 100 {
		cpu := time.Duration(1000 * (1 + (37*i)%100))
		batch.Slices = append(batch.Slices, record.Slice{Trial: 1, WallNS: cpu, Bytes: 1000, ClientCPUNS: &cpu})
	}
	s := SittingsOf(trials, []record.Slices{batch})
	near(t, "usually", s.Probe.Usual, 50.5, 1e-9)
	near(t, "at best", s.Probe.Best, 5.95, 1e-9)
	near(t, "slowed", s.Probe.Slowed(), math.Log(50.5/5.95), 1e-9)
	if len(s.Connections) != 0 || (Probe{}).Slowed() != 0 {
		t.Error("a probe is no connection, and none slows nothing")
	}
}

// What cannot be read in one slice is unknown of the connection; slices of
// unknown trials and without bytes are passed over.
func TestSlicesThatSayLess(t *testing.T) {
	trials, batches := turns(2, 20, func(int, int) (float64, float64) { return 1e6, 2e6 })
	batches[0].Slices[0].ServerCPUNS = nil
	batches[0].Slices = append(batches[0].Slices, record.Slice{Trial: 99, WallNS: 1, Bytes: 1}, record.Slice{Trial: 2, WallNS: 1})
	s := SittingsOf(trials, batches)
	if len(s.Connections) != 2 || s.Connections[0].Server.N != 0 || s.Connections[1].Server.N != 20 || s.Connections[0].Client.N != 20 {
		t.Errorf("%+v", s.Connections)
	}
	if none := SittingsOf(nil, nil); len(none.Connections) != 0 || none.Probe.Slowed() != 0 {
		t.Errorf("no slices: %+v", none)
	}
}

// Where some connections have one slice, or all have, the error is that of the
// usual deviation of a slice, and no figure is lost.
func TestOneSliceHasAnError(t *testing.T) {
	noise := rand.New(rand.NewPCG(3, 3))
	for name, many := range map[string]int{"some have one": 40, "all have one": 1} {
		trials, batches := turns(12, many, func(id, k int) (float64, float64) {
			if id > 6 && k > 0 {
				return 0, 0
			}
			return 1e6, 1e6 * math.Exp(0.05*noise.NormFloat64())
		})
		for i := 1; i <= 12; i++ {
			trial := trials[i]
			trial.Want.Cipher = []string{"aes128-ctr", "aes192-ctr", "aes256-ctr", "3des-cbc"}[i%4]
			trials[i] = trial
		}
		s := SittingsOf(trials, batches)
		for _, c := range s.Connections {
			if err := c.Client.Err; !(err > 0.004 && err < 0.3) {
				t.Errorf("%s: connection %d: error %v of %d slices", name, c.Trial.ID, err, c.Client.N)
			}
		}
		if apart := s.apart[client]; math.IsNaN(apart) || apart > 0.1 {
			t.Errorf("%s: shared error %v", name, apart)
		}
	}
}
