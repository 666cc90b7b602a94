package rank

import (
	"sshpace/internal/alg"
	"sshpace/internal/bench"
)

// Figure is one measurement that is no SSH trial in all files that have it.
type Figure struct {
	Source string
	Name   string
	Unit   bench.Unit
	Values []*Quantity // one per file; nil where a file lacks it. Lo and Hi are the range of repetitions
	Speeds []float64   // of each file after the first, relative to it: above 1 is better; 0 unknown
}

// figureKey is what makes two measurements comparable.
type figureKey struct {
	source, name string
	unit         bench.Unit
}

// figures lists the measurements that match the patterns, in the order of the
// files, where at least two files have them.
func (c *Comparison) figures(patterns []string) {
	var order []figureKey
	values := map[figureKey][]*Quantity{}
	for i, in := range c.Inputs {
		for _, m := range in.Ranking.Measurements {
			key := figureKey{m.Source, m.Name, m.Unit}
			if !alg.Match(patterns, m.Name) {
				continue
			}
			if values[key] == nil {
				values[key] = make([]*Quantity, len(c.Inputs))
				order = append(order, key)
			}
			if values[key][i] == nil {
				values[key][i] = quantityOf(m)
			}
		}
	}
	for _, key := range order {
		if f := relate(key, values[key]); f != nil {
			c.Figures = append(c.Figures, *f)
		}
	}
}

func quantityOf(m bench.Measurement) *Quantity {
	q := Quantity{Value: m.Value, Lo: m.Lo, Hi: m.Hi, N: max(1, m.N)}
	if q.Lo == 0 && q.Hi == 0 {
		q.Lo, q.Hi = m.Value, m.Value
	}
	return &q
}

// relate relates the values to the first file's; nil where fewer than two
// files have the measurement.
func relate(key figureKey, values []*Quantity) *Figure {
	f := &Figure{Source: key.source, Name: key.name, Unit: key.unit, Values: values}
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
			if speed = v.Value / first.Value; key.unit == bench.Milliseconds {
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
