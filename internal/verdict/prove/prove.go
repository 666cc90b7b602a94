// Package prove measures the present and the advised choice in turns, with real
// transfers, and says what the advice is worth.
package prove

import (
	"context"
	"fmt"
	"math"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/model"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/sys/workdir"
)

// Params say what is compared, and where.
type Params struct {
	Bed              *testbed.Testbed // with an ssh
	Present, Advised alg.Suite
	Directions       []record.Direction
	Rounds           int
	Size             unit.Bytes // of copies with scp and sftp
	Connect          time.Duration
	// Memory is a private folder in memory, where there is one; for copies on this
	// machine. Nothing in it is needed afterwards.
	Memory   *workdir.Dir
	Progress func(round int) // from 1
}

// Proof is what the rounds showed.
type Proof struct {
	target  string
	suites  [2]alg.Suite // present, advised
	methods []*method
}

// method is one way of moving data, and what the rounds of it showed.
type method struct {
	name    string
	direct  bool                                                                    // no copying program
	run     func(ctx context.Context, want alg.Suite) (rates, record.Sample, error) // no rates where the transfer failed
	speed   [2][]float64                                                            // bytes per second
	speeds  []float64                                                               // log of advised relative to present, round by round
	savings []float64                                                               // log of present relative to advised CPU cost

	failures int
	why      string // of the last one
}

// rates are what one run showed; zero where it could not be read.
type rates struct{ throughput, cost float64 }

// Measure runs the rounds. drain ends it between two of them.
func Measure(ctx, drain context.Context, p Params) (*Proof, error) {
	proof := &Proof{target: p.Bed.Target, suites: [2]alg.Suite{p.Present, p.Advised}}
	for _, direction := range p.Directions {
		proof.methods = append(proof.methods, direct(p.Bed, direction))
	}
	copies, cleanUp, err := copies(ctx, p)
	defer cleanUp()
	if err != nil {
		return nil, err
	}
	proof.methods = append(proof.methods, copies...)
	for round := range p.Rounds {
		if drain.Err() != nil {
			break
		}
		p.Progress(round + 1)
		if err := proof.round(ctx, round); err != nil {
			return nil, p.Bed.Explain(err)
		}
	}
	return proof, nil
}

// round runs every method with both choices; which of them is first changes from
// round to round, so that a trend favours neither.
func (p *Proof) round(ctx context.Context, number int) error {
	for _, m := range p.methods {
		if m.failures >= maxFailures {
			continue
		}
		var got [2]rates
		for _, k := range [2]int{number % 2, 1 - number%2} {
			r, sample, err := m.run(ctx, p.suites[k])
			if err == nil && r == (rates{}) {
				err = m.fail(sample)
			}
			if err != nil || ctx.Err() != nil {
				return err
			}
			got[k] = r
		}
		m.add(got)
	}
	return nil
}

func (m *method) add(got [2]rates) {
	if got[0].throughput > 0 && got[1].throughput > 0 {
		m.speeds = append(m.speeds, math.Log(got[1].throughput/got[0].throughput))
		for k := range got {
			m.speed[k] = append(m.speed[k], got[k].throughput)
		}
	}
	if got[0].cost > 0 && got[1].cost > 0 {
		m.savings = append(m.savings, math.Log(got[0].cost/got[1].cost))
	}
}

// maxFailures of one method: more is no accident.
const maxFailures = 3

// fail counts a transfer that failed. It is an error only where direct transfers
// keep failing: a host without scp or sftp can be proven without them.
func (m *method) fail(s record.Sample) error {
	if s.Outcome == record.Aborted {
		return nil
	}
	m.failures++
	m.why = fmt.Sprintf("%s: %s", s.Outcome, s.Detail)
	if m.direct && m.failures >= maxFailures {
		return &drive.HostError{Outcome: s.Outcome, Detail: fmt.Sprintf("%s failed %d times: %s", m.name, m.failures, m.why)}
	}
	return nil
}

// direct is one trial of the lab, with its check of what was negotiated.
func direct(bed *testbed.Testbed, direction record.Direction) *method {
	return &method{name: "raw " + string(direction), direct: true, run: func(ctx context.Context, want alg.Suite) (rates, record.Sample, error) {
		once := &single{trial: record.Trial{
			Want: want, Workload: record.Transfer, Direction: direction, SegmentNS: 150 * time.Millisecond, Segments: 4,
		}}
		ignore := func(record.Record) error { return nil }
		if err := lab.Run(ctx, lab.Params{Target: bed.Target, FirstID: 1, Drain: ctx}, once, bed.Driver, ignore); err != nil {
			return rates{}, once.sample, err
		}
		transfer, ok := model.TransferOf(once.trial, once.sample, 0)
		if !ok {
			return rates{}, once.sample, nil
		}
		return rates{throughput: 1e9 / transfer.Wall.Value(), cost: transfer.Total.Value()}, once.sample, nil
	}}
}

// single is a plan of one trial.
type single struct {
	trial  record.Trial
	sample record.Sample
	given  bool
}

func (s *single) Next(time.Duration) (record.Trial, bool) {
	given := s.given
	s.given = true
	return s.trial, !given
}

func (s *single) Observe(t record.Trial, sample record.Sample) { s.trial, s.sample = t, sample }
