package sim

import (
	"maps"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

func sorted(m map[string]float64) []string { return slices.Sorted(maps.Keys(m)) }

// Planner is what Collect drives; lab.Planner has the same methods.
type Planner interface {
	Next(elapsed time.Duration) (record.Trial, bool)
	Observe(record.Trial, record.Sample)
}

// Collect runs a plan on the machine until it ends, and returns the file that
// a lab would have written, and the simulated time that it took.
func (m *Machine) Collect(c record.Campaign, p Planner) (*record.File, time.Duration) {
	f := &record.File{Campaign: c, Trials: map[int]record.Trial{}}
	f.Campaign.Format = record.FormatVersion
	f.Campaign.Combos = alg.Fold(c.Offer).Combinations()
	f.Environment.Cores = max(m.Cores, 1)
	if m.Cores == 0 {
		f.Environment.Cores = 2
	}
	elapsed := time.Duration(0)
	for id := 1; ; id++ {
		t, ok := p.Next(elapsed)
		if !ok {
			return f, elapsed
		}
		t.ID = id
		s := m.Run(t)
		s.Trial, s.Start = id, time.Unix(0, 0).Add(elapsed)
		elapsed += s.ElapsedNS
		f.Trials[id] = t
		f.Samples = append(f.Samples, s)
		p.Observe(t, s)
	}
}
