package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// turns makes slices of connections 1, 2, ... in turn, in a new order in every round; what gives
// the payload and CPU time of the client in ns for the kth slice of one.
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

// Each slice takes 100 us besides 2 ns per byte; one in five is five times as long. What is left is
// 2 ns per byte for the client, 4 for both sides.
func TestExcessIsTakenOut(t *testing.T) {
	trials, batches := turns(8, 60, func(id, k int) (float64, float64) {
		bytes := float64(500_000 + 50_000*id)
		if (k+id)%5 == 0 {
			bytes *= 5
		}
		return bytes, 100_000 + 2*bytes
	})
	excess := excessOf(split(trials, batches))
	near(t, "excess of the client", excess[client], 100_000, 1)
	near(t, "excess of the server", excess[server], 100_000, 1)
	for _, c := range SittingsOf(trials, batches).Connections {
		near(t, "client", c.of[client].Value(), 2, 1e-4)
		near(t, "both", c.Cost().Value(), 4, 1e-4)
		near(t, "wall", c.Wall().Value(), 4, 1e-4)
		near(t, "slices", float64(c.of[client].N), 60, 0)
	}
}

// Slices are brief and three times as long by turns, and the machine slows half of them by a
// quarter: the excess is still what both have.
func TestExcessOfTwoLengths(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 7))
	excess := excessOf(split(turns(60, 80, func(id, k int) (float64, float64) {
		bytes := float64(500_000 + 5_000*id)
		if (k+id)%2 == 0 {
			bytes /= 3
		}
		return bytes, (70_000 + 2*bytes) * math.Exp(0.02*random.NormFloat64()+0.22*float64(random.IntN(2)))
	})))
	near(t, "excess of the client", excess[client], 70_000, 7_000)
}

// Where slices have steady parts, nothing else tells throughput, and nothing is taken off: what
// both sides cost side by side is what they cost in long transfers.
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
		near(t, "client", c.of[client].Value(), 2.5, 1e-3)
		if c.Trial.ID <= 2 {
			near(t, "throughput of one without", float64(c.Wall().N), 0, 0)
			continue
		}
		near(t, "wall", c.Wall().Value(), 2.5*1.1, 1e-3)
		near(t, "steady parts", float64(c.Wall().N), 10, 0)
	}
}

// takeSteady gives slices of one round in every few a steady part, in which either side takes 10 ms
// of CPU time, and wall says how long that was.
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

// A tenth of the steady parts takes twice as long, for both sides had one CPU, and one was stopped
// for minutes: a long transfer has its share of the former, and nothing of the latter.
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
	var walls []float64
	for _, c := range SittingsOf(trials, batches).Connections {
		walls = append(walls, c.Wall().Value())
	}
	near(t, "wall", stats.Mean(walls), 2.5*1.1*1.1, 0.02)
}

// Slices cost from 1 to 3 ns a byte, by the MAC. In long transfers the client takes 0.1 ns less,
// also with ciphers that are in no long slice.
func TestCostsAreThoseOfLongTransfers(t *testing.T) {
	cost := func(id int) float64 { return 1 + float64(id%5)/2 }
	ciphers := []string{"aes128-ctr", "aes128-cbc", "aes256-cbc", "chacha20-poly1305@openssh.com"}
	const more = -0.1
	trials, batches := turns(40, 80, func(id, _ int) (float64, float64) { return 500_000, 500_000 * cost(id) })
	for id, trial := range trials {
		trial.Want.Cipher = ciphers[id%4]
		trials[id] = trial
	}
	random := rand.New(rand.NewPCG(seedtest.Of(t), 3))
	for b := range batches {
		for i := range batches[b].Slices {
			s := &batches[b].Slices[i]
			if kind := s.Trial % 4; s.Round%20 == 0 && kind < 2 {
				cpu := time.Duration(4e6 * (cost(s.Trial) + more) * math.Exp(0.03*random.NormFloat64()))
				s.Long, s.Steady = true, &record.Steady{WallNS: cpu, Bytes: 4e6, ClientCPUNS: &cpu, ServerCPUNS: &cpu}
			}
		}
	}
	for _, c := range SittingsOf(trials, batches).Connections {
		of := c.of[client]
		near(t, c.Trial.Want.Cipher, of.Value()-cost(c.Trial.ID), more, 0.03)
		if err := of.moved * of.Value(); err < 0.005 || err > 0.02 {
			t.Errorf("%s is in doubt by %.3f ns a byte", c.Trial.Want.Cipher, err)
		}
	}
}

// Two kinds of cells cost the same while the other guests are calm, and these slow one kind by 60 %
// and the other by 20 % in some of their slices, now in half of them and then in a few: what is
// compared moves little, and the level of all is what it usually was.
func TestBaselinesAreCompared(t *testing.T) {
	seed := seedtest.Of(t)
	run := func(disturbed float64) (aes, des, slowed float64) {
		random := rand.New(rand.NewPCG(seed, 1))
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
			logs[c.Trial.ID%2] += c.of[client].Log / 10
		}
		return logs[0], logs[1], s.Slowed.Cost
	}
	aes, des, slowed := run(0.5)
	calmAES, calmDES, _ := run(0.05)
	near(t, "kinds that cost the same, beside busy guests", aes-des, 0, 0.02)
	near(t, "beside calm ones", calmAES-calmDES, 0, 0.015)
	near(t, "level of all", (aes+des)/2, 0.16, 0.09) // 0.2 but for the tails
	if slowed < 0.1 {
		t.Errorf("slowed by %.3f, want about 0.2 more than nothing", slowed)
	}
}

// What cannot be read in one slice is unknown of the connection; slices of unknown trials and
// without bytes are passed over.
func TestSlicesThatSayLess(t *testing.T) {
	trials, batches := turns(2, 20, func(int, int) (float64, float64) { return 1e6, 2e6 })
	batches[0].Slices[0].ServerCPUNS = nil
	batches[0].Slices = append(batches[0].Slices, record.Slice{Trial: 99, WallNS: 1, Bytes: 1}, record.Slice{Trial: 2, WallNS: 1})
	s := SittingsOf(trials, batches)
	if len(s.Connections) != 2 || s.Connections[0].of[server].N != 0 || s.Connections[1].of[server].N != 20 || s.Connections[0].of[client].N != 20 {
		t.Errorf("%+v", s.Connections)
	}
	if none := SittingsOf(nil, nil); len(none.Connections) != 0 {
		t.Errorf("no slices: %+v", none)
	}
}

// The machine is a fifth slower in the second half, in which one connection has most of its turns:
// it is no costlier than the others.
func TestLevelOfTheMachineIsShared(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
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
	near(t, "the one that was measured late", s.Connections[0].of[client].Log-s.Connections[1].of[client].Log, 0, 0.01)
}

// Of 0 to 19 the lowest quarter are 0 to 4.
func TestBaseline(t *testing.T) {
	var xs []float64
	for i := range 20 {
		xs = append(xs, float64(i))
	}
	near(t, "baseline", baseline(xs), 2, 1e-12)
	near(t, "of one value", baseline([]float64{3}), 3, 0)
	near(t, "of none", baseline(nil), 0, 0)
}

// analyzed are the errors of twelve cells, each with a connection of many slices, that vary by 5 %;
// in some runs fifty in a row are disturbed together.
func analyzed(t *testing.T, many, together int) []Effect {
	t.Helper()
	noise, level := rand.New(rand.NewPCG(seedtest.Of(t), 3)), map[int]float64{}
	trials, batches := turns(12, many, func(id, k int) (float64, float64) {
		if id > 6 && k > 0 && many > 1 && together == 1 {
			return 0, 0
		}
		if k%together == 0 {
			level[id] = 0.05 * noise.NormFloat64()
		}
		return 1e6, 1e6 * math.Exp(level[id])
	})
	for id, trial := range trials {
		trial.Want = alg.Suite{Cipher: []string{"aes128-ctr", "aes192-ctr", "aes256-ctr", "3des-cbc"}[id%4], MAC: []string{"hmac-sha1", "hmac-md5", "umac-64@openssh.com"}[id%3]}
		trials[id] = trial
	}
	return Analyze(record.Upload, nil, SittingsOf(trials, batches), 2).Client.Figures
}

// Where some connections have one slice, or all have, no figure is lost, and each has an error.
func TestOneSliceHasAnError(t *testing.T) {
	for _, many := range []int{40, 1} {
		for i, f := range analyzed(t, many, 1) {
			if !(f.Err > 0.001 && f.Err < 0.3) {
				t.Errorf("cell %d: error %v", i, f.Err)
			}
		}
	}
}

// What disturbs one slice disturbs its neighbors, too: the block bootstrap sees it.
func TestBlocksAreResampled(t *testing.T) {
	errs := func(together int) float64 {
		var out []float64
		for _, f := range analyzed(t, 1200, together) {
			out = append(out, f.Err)
		}
		return stats.Median(out)
	}
	if independent, together := errs(2), errs(60); together < 1.2*independent {
		t.Errorf("sixty slices in a row are one: the error is %.4f after %.4f", together, independent)
	}
}

// Other guests slow four slices in five, some connections twice as much as others: what is shown is
// the mean.
func TestSlowdown(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 2))
	var all []*Transfer
	for _, felt := range []float64{0.4, 0.4, 0.2, 0.2} {
		l := located{}
		for i := range 100 {
			l.logs = append(l.logs, 7+felt*float64(one(i%5 > 0))+0.01*random.NormFloat64())
		}
		l.Estimate = stats.Estimate{Log: stats.Trim(slices.Sorted(slices.Values(l.logs)), usualFrom, usualTo).Mean, N: len(l.logs)}
		all = append(all, &Transfer{of: [quantities]located{client: l}})
	}
	slowed, _ := slowdown(all)
	near(t, "slowed", slowed, 0.8*0.3, 0.04) // a fifth of the slices is free of it; of the others the highest are cut off
	if few, known := slowdown(all[:1]); known {
		t.Errorf("a hundred slices tell %v", few)
	}
}

// Of a host that is measured in pairs the costlier side orders cells, too, with the error of its
// own ratio.
func TestCostlierSideOfPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 5))
	trials, batch := map[int]record.Trial{}, record.Slices{Sitting: 1}
	for id, cipher := range []string{"aes128-ctr", "3des-cbc", "aes256-ctr"} {
		trials[id] = record.Trial{ID: id, Workload: record.Sitting, Want: alg.Suite{Cipher: cipher, MAC: "hmac-sha1"}, Direction: record.Upload}
	}
	reference := trials[0]
	reference.Role = record.RoleReference
	trials[0] = reference
	for k := range 120 {
		id := (k % 2) * (1 + k/2%2)
		cpu := time.Duration(float64(1+id) * 1e6 * math.Exp(0.02*random.NormFloat64()))
		more := 2 * cpu
		batch.Slices = append(batch.Slices, record.Slice{Trial: id, WallNS: 2 * more, Bytes: 1e6, ClientCPUNS: &cpu, ServerCPUNS: &more})
	}
	var cells []alg.Suite
	for _, trial := range trials {
		cells = append(cells, trial.Cell().Suite)
	}
	a := Paired(record.Upload, cells, trials, []record.Slices{batch})
	if len(a.Cost.Figures) != 3 {
		t.Fatalf("figures of %d cells", len(a.Cost.Figures))
	}
	for i, f := range a.Cost.Figures {
		if want := a.Server.Figures[i]; f.Log != want.Log || f.Err != want.Err || i == 0 && f.Err == 0 {
			t.Errorf("%s: %+v, want that of the server, %+v", a.Cells[i], f.Estimate, want.Estimate)
		}
	}
}

// On a quiet machine slices hardly vary, beside other guests by a quarter, and each program that is
// busy beside them has its part: what two equal cells may differ by is what the slices of that run
// show.
func TestNoiseFloorFollowsTheRun(t *testing.T) {
	seed := seedtest.Of(t)
	floor := func(disturbed, foreign float64) float64 {
		random := rand.New(rand.NewPCG(seed, 8))
		trials, batches := turns(40, 70, func(id, _ int) (float64, float64) {
			return 500_000, 1e6 * math.Exp(disturbed*math.Abs(random.NormFloat64())+0.02*random.NormFloat64())
		})
		for id, trial := range trials {
			trial.Want = alg.Suite{Cipher: []string{"aes128-ctr", "aes192-ctr", "aes256-ctr", "3des-cbc"}[id%4], MAC: []string{"hmac-sha1", "hmac-md5", "umac-64@openssh.com"}[id%3]}
			trials[id] = trial
		}
		s := SittingsOf(trials, batches)
		s.Slowed.Foreign = foreign
		return Analyze(record.Upload, nil, s, 2).Cost.Noise()
	}
	quiet, guests, loop, loops := floor(0, 0), floor(0.25, 0), floor(0, 1), floor(0, 1.9)
	if quiet > 0.015 || guests < 1.1*quiet || loop < 3*quiet || loops < 1.5*loop {
		t.Errorf("noise floors: %.4f quiet, %.4f beside other guests, %.4f beside a loop, %.4f beside two", quiet, guests, loop, loops)
	}
}

// One connection that was timed says less of throughput than twenty.
func TestFewTimedConnectionsLeaveDoubt(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 9))
	known := func(timed int) float64 {
		trials, batches := turns(40, 40, func(int, int) (float64, float64) { return 500_000, 1e6 })
		for id, trial := range trials {
			if id%2 == 0 {
				trial.Want = alg.Suite{Cipher: "aes128-gcm@openssh.com"}
			}
			trials[id] = trial
		}
		takeSteady(batches, 4, func(*record.Slice) time.Duration {
			return time.Duration(11e6 * math.Exp(0.1*random.NormFloat64()))
		})
		for b := range batches {
			for i := range batches[b].Slices {
				if s := &batches[b].Slices[i]; s.Trial > timed {
					s.Long, s.Steady = false, nil
				}
			}
		}
		return Analyze(record.Upload, nil, SittingsOf(trials, batches), 2).Wall.Figures[0].Err
	}
	if few, many := known(2), known(40); few < 2*many {
		t.Errorf("errors of throughput: %.4f by one connection of a kind, %.4f by twenty", few, many)
	}
}
