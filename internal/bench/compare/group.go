package compare

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// minOrder is the least number of cells for a statement on their order.
const minOrder = 3

// orders computes how similarly the files rank the cells that they have in common: by each file's
// own ranking, with ties in printed order.
func (c *Comparison) orders(tables []table, cells []Line) {
	if len(cells) < minOrder {
		return
	}
	for _, t := range tables[1:] {
		concordance, pairs := 0.0, 0.0
		for _, direction := range []record.Direction{record.Upload, record.Download, ""} {
			var xs, ys []float64
			for _, cell := range cells {
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

// groups compares groups of cells, those with one name, by the mean of each. The errors of cells
// are independent between computations except for the level of each run.
func (c *Comparison) groups(tables []table, cells []Line, t Table, name func(alg.Suite) string) (lines []Line) {
	names := map[string]alg.Suite{}
	for _, cell := range cells {
		if n := name(cell.Suite); n != "" {
			names[n] = map[Table]alg.Suite{Ciphers: {Cipher: n}, MACs: {MAC: n}}[t]
		}
	}
	for _, n := range slices.Sorted(maps.Keys(names)) {
		l := c.line(t, c.by, Subject{Name: n, Suite: names[n]})
		for k := 1; k < len(tables); k++ {
			r := Ratio{Estimate: pooled(tables, cells, k, func(s alg.Suite) bool { return name(s) == n })}
			if rest := pooled(tables, cells, k, func(s alg.Suite) bool { return name(s) != n }); rest.Known() && c.level(k) > 0 {
				r.Rest = r.Over(rest.WithError(c.lineLevel(k), 0))
			}
			r.Estimate = r.WithError(c.level(k), 0)
			l.Ratios = append(l.Ratios, r)
		}
		lines = append(lines, l)
	}
	return lines
}

// pooled returns the geometric mean ratio of file k over the matching cells, without the doubt
// about the level.
func pooled(tables []table, cells []Line, k int, match func(alg.Suite) bool) stats.Estimate {
	var logs []float64
	variance, predicted, guests := 0.0, 0.0, tables[k].guests
	for _, cell := range cells {
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
