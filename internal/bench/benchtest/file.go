package benchtest

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

func sorted(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }

// collector is a file in the making.
type collector struct {
	*Machine
	file    *record.File
	plan    plan.Plan
	weather *weather
	own     map[int]float64 // factor of each connection
	elapsed time.Duration
}

// openingTime is what a login costs of those that go on side by side.
const openingTime = 40 * time.Millisecond

// Collect runs a plan on the machine until it ends, and returns the file that
// a lab would have written, and the simulated time that it took.
func (m *Machine) Collect(c record.Campaign, p plan.Plan) (*record.File, time.Duration) {
	k := m.collector(c, p)
	for {
		step, ok := p.Next(k.elapsed)
		if !ok {
			return k.file, k.elapsed
		}
		k.do(step)
	}
}

func (m *Machine) collector(c record.Campaign, p plan.Plan) *collector {
	f := &record.File{Campaign: c, Trials: map[int]record.Trial{}}
	f.Campaign.Format = record.FormatVersion
	f.Campaign.Combos = alg.Fold(c.Offer).Combinations()
	f.Environment.Cores = m.cores()
	if m.random == nil {
		m.random, m.block = rand.New(rand.NewPCG(m.Seed, 7)), map[int]float64{}
	}
	return &collector{m, f, p, &weather{of: m.Neighbours, random: m.random}, map[int]float64{}, 0}
}

// do carries out one step.
func (k *collector) do(step plan.Step) {
	for _, t := range step.Trials {
		t.Target = k.file.Campaign.Target
		switch step.Action {
		case plan.Open:
			k.open(t)
		case plan.Turn:
			k.turn(step)
		case plan.Single:
			k.plan.Observe(t, k.single(t))
		}
	}
}

// single carries out a trial that has a connection of its own.
func (k *collector) single(t record.Trial) record.Sample {
	s := k.Run(t)
	k.elapsed += s.ElapsedNS
	k.keep(t, s)
	return s
}

// open opens a connection.
func (k *collector) open(t record.Trial) {
	k.own[t.ID] = k.noise(k.Connection)
	k.file.Trials[t.ID] = t
	k.elapsed += openingTime
	s := record.Sample{Got: t.Want, Outcome: record.OK, ElapsedNS: openingTime}
	if k.random.Float64() < k.Fail {
		s.Outcome, s.Got = record.Refused, alg.Suite{}
	}
	k.keep(t, s)
	k.plan.Opened(t, s)
}

func (k *collector) keep(t record.Trial, s record.Sample) {
	s.Trial, s.Start = t.ID, time.Unix(0, 0).Add(k.elapsed-s.ElapsedNS)
	k.file.Trials[t.ID] = t
	k.file.Samples = append(k.file.Samples, s)
}

// steadyFrom is the length of turns from which on both sides have a CPU each for a while.
const steadyFrom = 50 * time.Millisecond

// turn lets one connection move data.
func (k *collector) turn(step plan.Step) {
	t := step.Trials[0]
	slice := k.slice(t, Sitting{Slice: step.Length}, k.own[t.ID], k.weather.at(k.elapsed), false)
	slice.Trial, slice.Round, slice.Long, slice.HarnessCPUNS = t.ID, step.Round, step.Long, slice.WallNS/25
	if step.Length >= steadyFrom {
		slice.Steady = half(slice)
	}
	last := len(k.file.Slices) - 1
	if last < 0 || k.file.Slices[last].Sitting != step.Sitting || len(k.file.Slices[last].Slices) > 400 {
		k.file.Slices = append(k.file.Slices, record.Slices{Sitting: step.Sitting, Start: time.Unix(0, 0).Add(k.elapsed)})
		last++
	}
	batch := &k.file.Slices[last]
	slice.StartNS = k.elapsed - batch.Start.Sub(time.Unix(0, 0))
	batch.Slices = append(batch.Slices, slice)
	k.elapsed += slice.WallNS + step.Length/2 // looking for the end of it
	k.plan.Moved(step, slice)
}

// half of a slice is its steady part.
func half(s record.Slice) *record.Steady {
	client, server := *s.ClientCPUNS/2, *s.ServerCPUNS/2
	return &record.Steady{WallNS: s.WallNS / 2, Bytes: s.Bytes / 2, ClientCPUNS: &client, ServerCPUNS: &server}
}
