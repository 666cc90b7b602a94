package compare

import (
	"fmt"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// MeasurementChange is one measurement, other than an SSH trial, in all files that have it.
type MeasurementChange struct {
	Source string            `json:"source"`
	Name   string            `json:"name"`
	Unit   record.Unit       `json:"unit"`         // of the program
	Values []*stats.Interval `json:"values"`       // one per file; nil where a file lacks it. Lo and Hi are the range of repetitions
	Speeds []float64         `json:"speed_ratios"` // of each file after the first, relative to it: above 1 is better; 0 unknown
}

// figureKey identifies comparable measurements.
type figureKey struct {
	source, name string
	unit         record.Unit
}

func figureKeyOf(m record.Measurement) figureKey { return figureKey{m.Source, m.Name, m.Unit} }

// unpaired counts the measurements that only one of the files has, where others have some, too:
// they are not compared.
func unpaired(inputs []Input) []rank.Warning {
	files := map[figureKey]int{}
	measured := 0
	for _, in := range inputs {
		own := figureKeys(in.Ranking)
		if len(own) > 0 {
			measured++
		}
		for key := range own {
			files[key]++
		}
	}
	var out []rank.Warning
	for _, in := range inputs {
		alone := 0
		for key := range figureKeys(in.Ranking) {
			if files[key] == 1 {
				alone++
			}
		}
		if alone > 0 && measured > 1 {
			out = append(out, rank.Warning{Name: "unpaired", Text: fmt.Sprintf("figures besides SSH that are only in %s: %d", in.Label, alone)})
		}
	}
	return out
}

func figureKeys(r *rank.Ranking) map[figureKey]bool {
	keys := map[figureKey]bool{}
	for _, m := range r.Measurements {
		keys[figureKeyOf(m)] = true
	}
	return keys
}

// figures lists the measurements that match the patterns, in the order of the files, where at least
// two files have them.
func (c *Comparison) figures(patterns []string) {
	var order []figureKey
	values := map[figureKey][]*stats.Interval{}
	for i, in := range c.Inputs {
		for _, m := range in.Ranking.Measurements {
			key := figureKeyOf(m)
			if !alg.Match(patterns, m.Name) {
				continue
			}
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
		if f := relate(key, values[key]); f != nil {
			c.Figures = append(c.Figures, *f)
		}
	}
}

// relate compares the values with the first file's; nil where fewer than two files have the
// measurement.
func relate(key figureKey, values []*stats.Interval) *MeasurementChange {
	f := &MeasurementChange{Source: key.source, Name: key.name, Unit: key.unit, Values: values}
	present := 0
	for i, v := range values {
		if v != nil {
			present++
		}
		if i == 0 {
			continue
		}
		speed := 0.0
		if first := values[0]; first != nil && v != nil && first.Value > 0 && v.Value > 0 {
			if speed = v.Value / first.Value; key.unit == record.Milliseconds {
				speed = 1 / speed
			}
		}
		f.Speeds = append(f.Speeds, speed)
	}
	if present < 2 {
		return nil
	}
	return f
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
