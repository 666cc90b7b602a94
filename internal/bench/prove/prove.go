//go:build linux

// Package prove measures the present and the advised choice in turns, with real transfers, and
// reports the effect of the advice.
package prove

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/drive"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// proof holds the results of a request's rounds.
type proof struct {
	Request
	target  string
	suites  [2]alg.Suite // present, advised
	methods []*method
	left    []string // methods that could not be measured, with the reason
}

// method is a transfer method with the results of its rounds.
type method struct {
	name   string
	direct bool // a raw transfer
	// round moves data with both choices, the second one first if swap is set. Without rates of
	// both, sample describes the failure.
	round   func(ctx context.Context, swap bool) (got [2]rates, sample record.Sample, err error)
	speed   []float64 // of the present choice, in bytes per second
	speeds  []float64 // log of advised relative to present, round by round
	savings []float64 // log of present relative to advised CPU cost

	failures int
	why      string // of the last one
}

// rates are the results of one run; zero where a value could not be read.
type rates struct{ throughput, cost float64 }

// measure runs the rounds, with raw transfers first. drain ends it between two of them.
func (p *proof) measure(ctx, drain context.Context, bed *testbed.Testbed) error {
	p.target = bed.Target
	var raw []*method
	for i, direction := range p.Directions {
		turns := newPair(bed.Driver, courseWith(bed.Kind), p.suites, direction, 1+i*maxPairID)
		raw = append(raw, &method{name: "raw " + string(direction), direct: true, round: func(ctx context.Context, _ bool) ([2]rates, record.Sample, error) {
			return turns.round(ctx)
		}})
	}
	p.methods = append(raw, p.methods...)
	usual, began := time.Duration(len(raw))*usualRaw+time.Duration(len(p.methods)-len(raw))*usualCopy, time.Now()
	return sched.Loop[*method]{Rounds: p.Rounds, Due: func(round int) []*method {
		p.Progress(p.Rounds.Left(round+1, time.Since(began), usual))
		return slices.DeleteFunc(slices.Clone(p.methods), func(m *method) bool { return m.failures >= maxFailures })
	}, Take: func(round int, m *method) error { return m.take(ctx, round) }}.Run(drain)
}

// The usual time of a round with both choices on loopback, until a first one has shown it.
const (
	usualRaw  = 2 * time.Second
	usualCopy = 3 * time.Second // of 128 MiB
)

// maxPairID keeps the trials of two directions apart.
const maxPairID = 1000

// take runs the method with both choices; the first one alternates from round to round, so that a
// trend favors neither.
func (m *method) take(ctx context.Context, round int) error {
	got, sample, err := m.round(ctx, round%2 == 1)
	if err == nil && (got[0] == (rates{}) || got[1] == (rates{})) {
		err = m.fail(sample)
		got = [2]rates{}
	}
	if err == nil && ctx.Err() == nil {
		m.add(got)
	}
	return err
}

func (m *method) add(got [2]rates) {
	if got[0].throughput > 0 && got[1].throughput > 0 {
		m.speeds = append(m.speeds, math.Log(got[1].throughput/got[0].throughput))
		m.speed = append(m.speed, got[0].throughput)
	}
	if got[0].cost > 0 && got[1].cost > 0 {
		m.savings = append(m.savings, math.Log(got[0].cost/got[1].cost))
	}
}

// maxFailures of one method: more is not an accident.
const maxFailures = 3

// fail counts a transfer that failed. It is an error only if direct transfers keep failing: a host
// without scp or sftp allows a proof without them.
func (m *method) fail(s record.Sample) error {
	if s.Outcome == record.Aborted {
		return nil
	}
	m.failures++
	m.why = fmt.Sprintf("%s: %s", s.Outcome, s.Detail)
	if m.direct && m.failures >= maxFailures {
		return &drive.HostError{Failed: openssh.Failed{Outcome: s.Outcome, Said: fmt.Sprintf("%s failed %d times: %s", m.name, m.failures, m.why)}}
	}
	return nil
}
