package compare

import (
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Group is a cipher, a MAC or a key exchange in all files.
type Group struct {
	Name   string  `json:"name"`
	Ratios []Ratio `json:"ratios"` // of each file after the first
}

// minOrder is the least number of cells for a statement on their order.
const minOrder = 3

// orders computes how similarly the files rank the cells that they have in common: by each file's
// own ranking, with ties in printed order.
func (c *Comparison) orders(tables []table) {
	if len(c.Cells) < minOrder {
		return
	}
	for _, t := range tables[1:] {
		concordance, pairs := 0.0, 0.0
		for _, direction := range []record.Direction{record.Upload, record.Download, ""} {
			var xs, ys []float64
			for _, cell := range c.Cells {
				if key := record.CellOf(cell.Suite, direction); cell.Direction == direction {
					xs, ys = append(xs, float64(tables[0].entries[key].rank)), append(ys, float64(t.entries[key].rank))
				}
			}
			weight := float64(len(xs)*(len(xs)-1)) / 2
			concordance += weight * stats.KendallTau(xs, ys)
			pairs += weight
		}
		c.Order = append(c.Order, concordance/pairs)
	}
}

// groups compares ciphers, MACs and everything by the mean of their cells, whose errors are
// independent between computations except for the level of each run.
func (c *Comparison) groups(tables []table) {
	axis := func(name func(alg.Suite) string) []Group {
		var names []string
		for _, cell := range c.Cells {
			if n := name(cell.Suite); n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		var out []Group
		var lines [][]Ratio
		for _, n := range names {
			g := Group{Name: n}
			for k := 1; k < len(tables); k++ {
				r := Ratio{Speed: c.pooled(tables, k, func(s alg.Suite) bool { return name(s) == n })}
				if rest := c.pooled(tables, k, func(s alg.Suite) bool { return name(s) != n }); rest.Known() && c.level(k) > 0 {
					r.Rest = r.Speed.Over(rest.WithError(c.lineLevel(k), 0))
				}
				r.Speed = r.Speed.WithError(c.level(k), 0)
				g.Ratios = append(g.Ratios, r)
			}
			out, lines = append(out, g), append(lines, g.Ratios)
		}
		judge(lines)
		return out
	}
	if len(c.Cells) == 0 {
		return
	}
	c.Ciphers = axis(func(s alg.Suite) string { return s.Cipher })
	c.MACs = axis(func(s alg.Suite) string { return s.MAC })
	c.Overall = axis(func(alg.Suite) string { return "all" })[0].Ratios
}

// pooled returns the geometric mean ratio of file k over the matching cells, without the doubt
// about the level.
func (c *Comparison) pooled(tables []table, k int, match func(alg.Suite) bool) stats.Estimate {
	var logs []float64
	variance, predicted, guests := 0.0, 0.0, tables[k].guests
	for _, cell := range c.Cells {
		if !match(cell.Suite) {
			continue
		}
		key := record.CellOf(cell.Suite, cell.Direction)
		a, b := tables[0].entries[key], tables[k].entries[key]
		logs = append(logs, b.best.Log-a.best.Log-guests.Log)
		own := float64(a.shared)*a.best.Err*a.best.Err + float64(b.shared)*b.best.Err*b.best.Err // one estimate counts once
		if a.best.N > 0 && b.best.N > 0 {
			variance += own
		} else {
			predicted += own / 4 // predictions share half of their errors
		}
	}
	if len(logs) == 0 {
		return stats.Estimate{}
	}
	n := float64(len(logs))
	err := math.Sqrt(variance+n*predicted) / n
	if n >= 6 { // cells may differ by more than their noise: let them say so
		err = math.Max(err, math.Sqrt(stats.Variance(logs)/n))
	}
	// related cells feel other guests similarly
	return stats.Estimate{Log: stats.Mean(logs), Err: math.Hypot(err, guests.Err), N: len(logs)}
}
