//go:build linux

package prove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/model"
	"sshpace/internal/record"
)

// Turns of a round. A cycle is some short turns, which show costs, and long ones, which
// show throughput; both choices have them one after the other, and which of them is
// first changes from turn to turn.
const (
	cycles     = 20
	shortTurns = 6
	longTurns  = 3
	shortTurn  = time.Millisecond
	longTurn   = 8 * time.Millisecond
	minCycles  = 2
	roundLimit = 5 * time.Second // after which a round has no further cycle, as on a slow network
)

// pair is one connection of each choice. Every round has new ones: where the scheduler
// once put the processes of a connection they stay for seconds, so that two connections of
// one choice differ by some percent while they are open.
type pair struct {
	driver lab.Driver
	trials [2]record.Trial // present, advised
	open   [2]bool
	id     int // of the last trial
	n      int // turns so far
}

func newPair(driver lab.Driver, suites [2]alg.Suite, d record.Direction, firstID int) *pair {
	p := &pair{driver: driver, id: firstID - 1}
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
	slices := record.Slices{Sitting: 1}
	began := time.Now()
	for cycle := range cycles {
		if cycle >= minCycles && time.Since(began) > roundLimit || ctx.Err() != nil {
			break
		}
		for i := range shortTurns + longTurns {
			if lost, err := p.turn(ctx, i >= shortTurns, &slices); err != nil || lost != "" {
				return got, record.Sample{Outcome: record.Broken, Detail: lost}, err
			}
		}
	}
	if ctx.Err() != nil {
		return got, record.Sample{Outcome: record.Aborted}, nil
	}
	return p.rates(slices), record.Sample{Outcome: record.OK}, nil
}

// enter opens the connection of a choice.
func (p *pair) enter(ctx context.Context, k int) (out record.Sample, err error) {
	p.id++
	p.trials[k].ID = p.id
	err = p.driver.Open(ctx, []record.Trial{p.trials[k]}, func(t record.Trial, s record.Sample) error {
		lab.Check(t, &s)
		out, p.open[k] = s, s.Outcome == record.OK
		if !p.open[k] {
			p.driver.Close(t.ID)
		}
		return nil
	})
	if ctx.Err() != nil {
		out.Outcome = record.Aborted
	}
	return out, err
}

// turn lets both choices move data. lost says why one of the connections came to its
// end.
func (p *pair) turn(ctx context.Context, long bool, slices *record.Slices) (lost string, err error) {
	length := shortTurn
	if long {
		length = longTurn
	}
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
		s.Long = long
		slices.Slices = append(slices.Slices, s)
	}
	return "", nil
}

// rates are what the slices of a round say of both choices.
func (p *pair) rates(slices record.Slices) (got [2]rates) {
	trials := map[int]record.Trial{p.trials[0].ID: p.trials[0], p.trials[1].ID: p.trials[1]}
	for _, c := range model.SittingsOf(trials, []record.Slices{slices}).Connections {
		for k, t := range p.trials {
			if c.Trial.ID == t.ID {
				got[k] = rates{throughput: 1e9 / c.Wall.Value(), cost: c.Total.Value()}
			}
		}
	}
	return got
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
