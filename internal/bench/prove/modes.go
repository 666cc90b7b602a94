//go:build linux

package prove

import (
	"context"
	"errors"
	"fmt"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
)

// methodsOf are what people do with SSH, with both choices; left are those that cannot
// be measured, with the reason.
func methodsOf(p params, suites [2]alg.Suite) (methods []*method, left []string) {
	for _, direction := range p.directions {
		for _, mode := range p.modes {
			var both [2]*transfer.Subject
			for k, suite := range suites {
				both[k] = p.ground.Subjects([]record.Mode{mode}, transfer.Options{Suite: suite, Direction: direction, Streams: 1})[0]
			}
			name := fmt.Sprintf("%s %s", mode, direction)
			if why := both[0].Why; why != "" {
				left = append(left, name+": "+why)
				continue
			}
			methods = append(methods, &method{name: name, round: func(ctx context.Context, swap bool) ([2]rates, record.Sample, error) {
				return inTurn(ctx, both, swap, int64(p.size))
			}})
		}
	}
	return methods, left
}

// inTurn runs both, the second one first where that is asked for.
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
