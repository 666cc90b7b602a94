package compare

import (
	"fmt"
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// figureKey identifies comparable measurements.
type figureKey struct {
	source, name string
	unit         record.Unit
}

// figures compares the measurements that match the patterns, in the order of the files, where at
// least two files have them. unpaired counts those of all that only one file has, where others have
// some, too: they are not compared.
func (c *Comparison) figures(patterns []string) (lines []Line, unpaired []rank.Warning) {
	var order []figureKey
	values := map[figureKey][]*stats.Interval{}
	measured, alone := 0, make([]int, len(c.Inputs))
	for i, in := range c.Inputs {
		if len(in.Ranking.Measurements) > 0 {
			measured++
		}
		for _, m := range in.Ranking.Measurements {
			key := figureKey{m.Source, m.Name, m.Unit}
			if values[key] == nil {
				values[key] = make([]*stats.Interval, len(c.Inputs))
				order = append(order, key)
			}
			if values[key][i] == nil {
				own := RangeOf(m)
				values[key][i] = &own
			}
		}
	}
	for _, key := range order {
		l := Line{Table: Figures, Subject: Subject{Name: key.name, Source: key.source}, Quantity: Speed, Unit: string(key.unit), Values: values[key]}
		var present []int
		for i, v := range l.Values {
			if v != nil {
				present = append(present, i)
			}
			if i > 0 {
				l.Ratios = append(l.Ratios, Ratio{Estimate: key.speed(l.Values[0], v)})
			}
		}
		switch {
		case len(present) == 1:
			alone[present[0]]++
		case alg.Match(patterns, key.name):
			lines = append(lines, l)
		}
	}
	for i, n := range alone {
		if n > 0 && measured > 1 {
			unpaired = append(unpaired, rank.Warning{Name: "unpaired", Text: fmt.Sprintf("figures besides SSH that are only in %s: %d", c.Inputs[i].Label, n)})
		}
	}
	return lines, unpaired
}

// speed returns how much faster another value is than the first one, whatever their ranges;
// unknown where either is missing.
func (k figureKey) speed(first, other *stats.Interval) stats.Estimate {
	if first == nil || other == nil || first.Value <= 0 || other.Value <= 0 {
		return stats.Estimate{}
	}
	e := stats.Estimate{Log: math.Log(other.Value / first.Value), N: min(first.N, other.N)}
	if k.unit == record.Milliseconds {
		return e.Inverse()
	}
	return e
}

// RangeOf returns a measurement other than an SSH trial, in its unit, with the range of its
// repetitions in place of an interval.
func RangeOf(m record.Measurement) stats.Interval {
	q := stats.Interval{Value: m.Value, Lo: m.Lo, Hi: m.Hi, N: max(1, m.N)}
	if q.Lo == 0 && q.Hi == 0 {
		q.Lo, q.Hi = m.Value, m.Value
	}
	return q
}
