//go:build linux

// Package prove measures the present and the advised choice in turns, with real
// transfers, and says what the advice is worth.
package prove

import (
	"context"
	"fmt"
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/measure/workload"
	"sshpace/internal/record"
)

// Params say what is compared, and where.
type Params struct {
	Bed              *testbed.Testbed // with an ssh
	Present, Advised alg.Suite
	Directions       []record.Direction
	Rounds           int
	Modes            []record.Mode   // what people do, beside the raw transfer
	Ground           *workload.Bed   // for the modes; nil: none can be measured
	Size             unit.Bytes      // that modes move
	Progress         func(round int) // from 1
}

// Proof is what the rounds showed.
type Proof struct {
	target  string
	suites  [2]alg.Suite // present, advised
	methods []*method
	size    unit.Bytes
	left    []string // what could not be measured, and why
}

// method is one way of moving data, and what the rounds of it showed.
type method struct {
	name   string
	direct bool // a raw transfer
	// round moves data with both choices, the second one first where that is asked for.
	// Without rates of both, sample says what failed.
	round   func(ctx context.Context, swap bool) (got [2]rates, sample record.Sample, err error)
	speed   [2][]float64 // bytes per second
	speeds  []float64    // log of advised relative to present, round by round
	savings []float64    // log of present relative to advised CPU cost

	failures int
	why      string // of the last one
}

// rates are what one run showed; zero where it could not be read.
type rates struct{ throughput, cost float64 }

// Measure runs the rounds. drain ends it between two of them.
func Measure(ctx, drain context.Context, p Params) (*Proof, error) {
	proof := &Proof{target: p.Bed.Target, suites: [2]alg.Suite{p.Present, p.Advised}, size: p.Size}
	for i, direction := range p.Directions {
		turns := newPair(p.Bed.Driver, proof.suites, direction, 1+i*maxPairID)
		defer turns.close()
		proof.methods = append(proof.methods, &method{name: "raw " + string(direction), direct: true, round: func(ctx context.Context, _ bool) ([2]rates, record.Sample, error) {
			return turns.round(ctx)
		}})
	}
	if p.Ground != nil {
		methods, left := ways(p, proof.suites)
		proof.methods, proof.left = append(proof.methods, methods...), left
	}
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

// maxPairID keeps the trials of two directions apart.
const maxPairID = 1000

// round runs every method with both choices; which of them is first changes from
// round to round, so that a trend favours neither.
func (p *Proof) round(ctx context.Context, number int) error {
	for _, m := range p.methods {
		if m.failures >= maxFailures {
			continue
		}
		got, sample, err := m.round(ctx, number%2 == 1)
		if err == nil && (got[0] == (rates{}) || got[1] == (rates{})) {
			err = m.fail(sample)
			got = [2]rates{}
		}
		if err != nil || ctx.Err() != nil {
			return err
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
