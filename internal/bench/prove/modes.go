//go:build linux

package prove

import (
	"context"
	"errors"
	"fmt"

	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
)

// include adds modes of SSH, with both choices, or the reason why they cannot be measured.
func (p *proof) include(ground *transfer.Ground, modes []record.Mode) {
	for _, direction := range p.Directions {
		for _, mode := range modes {
			var both [2]*transfer.Subject
			for k, suite := range p.suites {
				both[k] = ground.Subjects([]record.Mode{mode}, transfer.Options{Suite: suite, Direction: direction, Streams: 1})[0]
			}
			name := fmt.Sprintf("%s %s", mode, direction)
			if why := both[0].Why; why != "" {
				p.left = append(p.left, name+": "+why)
				continue
			}
			p.methods = append(p.methods, &method{name: name, round: func(ctx context.Context, swap bool) ([2]rates, record.Sample, error) {
				return inTurn(ctx, both, swap, int64(p.Size))
			}})
		}
	}
}

// inTurn runs both, the second one first if swap is set.
func inTurn(ctx context.Context, both [2]*transfer.Subject, swap bool, size int64) (got [2]rates, s record.Sample, err error) {
	order := [2]int{0, 1}
	if swap {
		order = [2]int{1, 0}
	}
	for _, k := range order {
		r, err := both[k].Run(ctx, size)
		if ctx.Err() != nil {
			return [2]rates{}, record.Sample{Outcome: record.Aborted}, nil
		}
		if failure, ok := errors.AsType[*transfer.Failure](err); ok {
			return [2]rates{}, record.Sample{Outcome: record.Broken, Detail: failure.Error()}, nil
		}
		if err != nil {
			return [2]rates{}, record.Sample{}, err
		}
		got[k].throughput = float64(size) / r.Wall.Seconds()
		if r.Server > 0 {
			got[k].cost = float64((r.Client + r.Server).Nanoseconds()) / float64(size)
		}
	}
	return got, s, nil
}
