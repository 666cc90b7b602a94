//go:build linux

package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/drive"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/model"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

// Turns of a round. A cycle is some brief and usual turns, which show costs, and one that
// shows throughput, as bench has them; both choices have them one after the other, and which
// of them is first changes from turn to turn.
const (
	minCycles  = 2
	roundLimit = 5 * time.Second // after which a round has no further cycle, as on a slow network
)

// course is the cycles of a round.
type course struct {
	cycles int
	cycle  []time.Duration
}

func courseWith(server record.ServerKind) course {
	short := slices.Repeat([]time.Duration{plan.BriefLength, plan.UsualLength}, 4)
	if server == record.ServerRemote {
		return course{20, []time.Duration{plan.PairLength}}
	}
	return course{9, append(short, plan.SteadyLength)}
}

// pair is one connection of each choice. Every round has new ones: where the scheduler
// once put the processes of a connection they stay for seconds, so that two connections of
// one choice differ by some percent while they are open.
type pair struct {
	driver lab.Driver
	course course
	trials [2]record.Trial // present, advised
	open   [2]bool
	id     int // of the last trial
	n      int // turns so far
}

func newPair(driver lab.Driver, c course, suites [2]alg.Suite, d record.Direction, firstID int) *pair {
	p := &pair{driver: driver, course: c, id: firstID - 1}
	for k, want := range suites {
		p.trials[k] = record.Trial{Want: want, Workload: record.Sitting, Direction: d}
	}
	return p
}

// round lets both connections take turns and returns what they showed; sample says
// why there are no rates of a choice.
func (p *pair) round(ctx context.Context) (got [2]rates, sample record.Sample, err error) {
	defer p.close()
	for k := range p.trials {
		if sample, err = p.enter(ctx, k); err != nil || sample.Outcome != record.OK {
			return got, sample, err
		}
	}
	moved := record.Slices{Sitting: 1}
	began := time.Now()
	for cycle := range p.course.cycles {
		if cycle >= minCycles && time.Since(began) > roundLimit || ctx.Err() != nil {
			break
		}
		for _, length := range p.course.cycle {
			if lost, err := p.turn(ctx, length, &moved); err != nil || lost != "" {
				return got, record.Sample{Outcome: record.Broken, Detail: lost}, err
			}
		}
	}
	if ctx.Err() != nil {
		return got, record.Sample{Outcome: record.Aborted}, nil
	}
	return p.rates(moved), record.Sample{Outcome: record.OK}, nil
}

// enter opens the connection of a choice.
func (p *pair) enter(ctx context.Context, k int) (out record.Sample, err error) {
	p.id++
	p.trials[k].ID = p.id
	err = lab.Open(ctx, p.driver, []record.Trial{p.trials[k]}, func(_ record.Trial, s record.Sample) error {
		out, p.open[k] = s, s.Outcome == record.OK
		return nil
	})
	if ctx.Err() != nil {
		out.Outcome = record.Aborted
	}
	return out, err
}

// turn lets both choices move data. lost says why one of the connections came to its
// end.
func (p *pair) turn(ctx context.Context, length time.Duration, moved *record.Slices) (lost string, err error) {
	p.n++
	for _, k := range [2]int{p.n % 2, 1 - p.n%2} {
		s, lost, err := p.driver.Slice(ctx, p.trials[k], length)
		if _, paused := errors.AsType[*drive.Pause](err); paused || errors.Is(err, context.Canceled) {
			return "", nil
		}
		if lost != "" {
			p.open[k] = false
			return fmt.Sprintf("the connection of %s was lost: %s", p.trials[k].Want.Bulk(), lost), nil
		}
		if err != nil {
			return "", err
		}
		s.Long = length > plan.UsualLength
		moved.Slices = append(moved.Slices, s)
	}
	return "", nil
}

// rates are what the slices of a round say of both choices.
func (p *pair) rates(moved record.Slices) (got [2]rates) {
	trials := map[int]record.Trial{p.trials[0].ID: p.trials[0], p.trials[1].ID: p.trials[1]}
	for _, c := range model.SittingsOf(trials, []record.Slices{moved}).Connections {
		for k, t := range p.trials {
			if c.Trial.ID == t.ID {
				got[k] = rates{cost: known(c.Cost())}
				if wall := known(c.Wall()); wall > 0 {
					got[k].throughput = 1e9 / wall
				}
			}
		}
	}
	return got
}

// known is the value of an estimate, 0 where there is none.
func known(e stats.Estimate) float64 {
	if e.N == 0 {
		return 0
	}
	return e.Value()
}

// close ends both connections.
func (p *pair) close() {
	for k, t := range p.trials {
		if p.open[k] {
			p.driver.Close(t.ID)
			p.open[k] = false
		}
	}
}
