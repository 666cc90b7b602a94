package benchtest

import (
	"context"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

// Sitter is a driver of simulated connections, which takes only simulated time.
type Sitter struct {
	*Machine
	excess  float64 // cost of a slice on either side besides its bytes, in ns
	look    float64 // for the end of a slice, as a part of its length
	opening time.Duration
	weather *weather
	own     map[int]float64 // factor of each connection
	now     time.Duration
}

// NewSitter returns a driver of the machine.
func NewSitter(m *Machine) *Sitter {
	m.begin(13)
	return &Sitter{Machine: m, excess: 70e3, weather: m.weather(), own: map[int]float64{}}
}

// Collect lets the lab carry out a plan on the machine until it ends, and returns the file, and the
// simulated time that it took.
func (m *Machine) Collect(c record.Campaign, p plan.Plan) (*record.File, time.Duration) {
	f := m.file(c)
	return f, m.Resume(f, p)
}

// Resume lets the lab carry out a plan for the rest of a file, and returns the simulated time.
func (m *Machine) Resume(f *record.File, p plan.Plan) time.Duration {
	if m.random == nil {
		m.begin(7)
	}
	p.Begin(f)
	s := &Sitter{Machine: m, look: 0.5, opening: openingTime, weather: &weather{of: m.Neighbors, random: m.random}, own: map[int]float64{}}
	if err := lab.Run(context.Background(), lab.Params{Target: f.Campaign.Target, Now: s.time}, p, s, f.Sink()); err != nil {
		panic(err) // neither the driver nor the sink has errors
	}
	return s.now
}

func (s *Sitter) time() time.Time { return time.Unix(0, 0).Add(s.now) }

// Elapsed returns the simulated time so far.
func (s *Sitter) Elapsed() time.Duration { return s.now }

// openingTime is the time of one of several simultaneous logins.
const openingTime = 40 * time.Millisecond

// Open opens connections.
func (s *Sitter) Open(_ context.Context, trials []record.Trial, each func(record.Trial, record.Sample) error) error {
	for _, t := range trials {
		s.own[t.ID] = s.noise(s.Connection)
		sample := record.Sample{Got: t.Want, Outcome: record.OK, Start: s.time(), ElapsedNS: openingTime}
		s.now += s.opening
		if s.random.Float64() < s.Fail {
			sample.Outcome, sample.Got = record.Refused, alg.Suite{}
		}
		if err := each(t, sample); err != nil {
			return err
		}
	}
	return nil
}

// steadyFrom is the length of turns from which on each side has its own CPU for a while.
const steadyFrom = 50 * time.Millisecond

// Slice lets one connection move data.
func (s *Sitter) Slice(_ context.Context, t record.Trial, length time.Duration) (out record.Slice, lost string, err error) {
	out = s.slice(t, Sitting{Slice: length, ExcessNS: s.excess}, s.own[t.ID], s.weather.at(s.now), false)
	out.HarnessCPUNS = out.WallNS / 25
	if length >= steadyFrom { // half of it is its steady part
		client, server := *out.ClientCPUNS/2, *out.ServerCPUNS/2
		out.Steady = &record.Steady{WallNS: out.WallNS / 2, Bytes: out.Bytes / 2, ClientCPUNS: &client, ServerCPUNS: &server}
	}
	s.now += out.WallNS + time.Duration(s.look*float64(length))
	return out, "", nil
}

// Close does nothing.
func (s *Sitter) Close(...int) map[int]int { return nil }

// Run carries out a trial with its own connection.
func (s *Sitter) Run(_ context.Context, t record.Trial) (record.Sample, error) {
	out := s.Machine.Run(t)
	out.Start = s.time()
	s.now += out.ElapsedNS
	return out, nil
}
