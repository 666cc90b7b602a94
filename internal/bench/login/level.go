package login

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/stats"
)

// side of a login: the client, or the server.
type side int

const sides = 2

// cpu is what a side took; 0 is unknown.
func (o *observed) cpu(s side) time.Duration {
	if s == 0 {
		return o.ClientCPU
	}
	return o.server
}

const (
	minLevelled = 4   // logins of each kind, to tell disturbances from them
	farOff      = 2.5 // deviations; a reading that is further off counts less
	passes      = 3   // each knows better than the one before what is usual
	leastLent   = 10  // logins' worth that a kind takes from all others about how much it varies
	mostLent    = 1e4 // likewise, where no kind varies more than others
)

// costs are CPU times of all kinds of logins.
type costs struct {
	of     [sides]map[kindOf]Figure
	beside [sides]Figure // of logins beside others, in relation to those alone; none: there are none
}

// column is what a coefficient of the regression stands for: a side of a kind of
// login, or where else than alone a side computed.
type column struct {
	kind kindOf
	core int
	side side
}

const (
	anyKind = -1
	alone   = -1 // no core: nothing else was beside it
)

// columns number them.
type columns map[column]int

func (c columns) number(of column) int {
	if _, known := c[of]; !known {
		c[of] = len(c)
	}
	return c[of]
}

// readings are the CPU times of logins, for each core those in the order of time.
func (c columns) readings(kinds []kindOf, logins []*observed) (series [][]reading) {
	on := map[int][]reading{}
	for i, o := range logins {
		for s := range side(sides) {
			if o.cpu(s) <= 0 {
				continue
			}
			r := reading{at: o.middle(logins[0].began), log: math.Log(float64(o.cpu(s))), group: c.number(column{kinds[i], alone, s}), offset: -1, weight: 1}
			if o.core != alone {
				r.offset = c.number(column{anyKind, o.core, s})
			}
			on[o.core] = append(on[o.core], r)
		}
	}
	for _, core := range slices.Sorted(maps.Keys(on)) {
		slices.SortStableFunc(on[core], func(a, b reading) int { return cmp.Compare(a.at, b.at) })
		series = append(series, on[core])
	}
	return series
}

// costsOf are the CPU times of kinds of logins, freed of what others at the same time
// on the same core were off by.
func costsOf(kinds []kindOf, logins []*observed) costs {
	c := columns{}
	series := c.readings(kinds, logins)
	d, f := drift{short: usualDrift.short, long: usualDrift.long}, medians(series, len(c))
	for range passes {
		if fewest(kinds) >= minLevelled {
			d = driftOf(series, f.left)
		}
		d.judge(series, &f)
		weigh(series)
		f = d.fit(series, len(c))
	}
	return c.told(&f, series)
}

// medians are what a regression begins with.
func medians(series [][]reading, columns int) fitted {
	logs := make([][]float64, columns)
	for _, r := range slices.Concat(series...) {
		logs[r.group] = append(logs[r.group], r.log)
	}
	f := fitted{value: make([]float64, columns)}
	for i, all := range logs {
		if len(all) > 0 {
			f.value[i] = stats.Median(all)
		}
	}
	return f
}

// fewest is how many logins the kind has that has fewest.
func fewest(kinds []kindOf) int {
	count := map[kindOf]int{}
	for _, k := range kinds {
		count[k]++
	}
	return slices.Min(append(slices.Collect(maps.Values(count)), len(kinds)))
}

// weigh lets what is far off count less.
func weigh(series [][]reading) {
	for _, all := range series {
		for i := range all {
			r := &all[i]
			r.weight = 1 / max(1, r.off*r.off/(farOff*farOff))
		}
	}
}

// varied is by how much a column's readings are off, as squares of what is usual.
type varied struct{ squares, n float64 }

// arm is how many usual errors the interval goes to either side, with what was borrowed.
func (v varied) arm(borrowed float64) float64 {
	return math.Sqrt((v.squares+borrowed)/(v.n+borrowed)) * stats.StudentQuantile(v.n-1+borrowed)
}

// variances are those of all columns, and how many readings' worth each takes from all
// others.
func (f *fitted) variances(c columns, series [][]reading) (own []varied, borrowed float64) {
	own = make([]varied, len(c))
	squares, n := 0.0, 0.0
	for _, r := range slices.Concat(series...) {
		square := r.off * r.off * r.weight
		own[r.group] = varied{own[r.group].squares + square, own[r.group].n + 1}
		squares, n = squares+square, n+1
	}
	if squares == 0 {
		return own, leastLent
	}
	for i := range own {
		own[i].squares /= squares / n
	}
	return own, lent(own, minLevelled, leastLent)
}

// lent is how many readings' worth each takes from all others, at least and at most
// mostLent: the less they differ in how much they vary, the more (Smyth 2004, section
// 6.2: the logarithms of their variances vary by more than those of as many readings of
// one variance would). Those of fewer than some readings tell nothing.
func lent(own []varied, some, least float64) float64 {
	var logs, expected []float64
	for _, v := range own {
		if v.n >= some && v.squares > 0 {
			logs = append(logs, math.Log(v.squares/v.n))
			expected = append(expected, trigamma((v.n-1)/2))
		}
	}
	if len(logs) < 2 {
		return least
	}
	excess := stats.Variance(logs) - stats.Mean(expected)
	low, high := least, float64(mostLent)
	for high/low > 1.01 { // trigamma falls
		if middle := math.Sqrt(low * high); trigamma(middle/2) > excess {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// trigamma is the second derivative of the logarithm of the gamma function
// (Abramowitz and Stegun 6.4.6 and 6.4.12): the variance of the logarithm of a variance
// of 2x degrees of freedom.
func trigamma(x float64) (sum float64) {
	for ; x < 6; x++ {
		sum += 1 / (x * x)
	}
	y := 1 / (x * x)
	return sum + 1/x + y/2 + y/x*(1.0/6-y*(1.0/30-y/42))
}

// told are the figures. An interval tells how a kind is related to all others of that
// side: the level of the computer in the whole run is not in it, unless there is one
// kind only.
func (c columns) told(f *fitted, series [][]reading) (out costs) {
	own, borrowed := f.variances(c, series)
	for s := range side(sides) {
		var of []int
		for key, i := range c {
			if key.side == s && key.kind != anyKind {
				of = append(of, i)
			}
		}
		out.of[s] = map[kindOf]Figure{}
		for key, i := range c {
			if key.side == s && key.kind != anyKind {
				arm := own[i].arm(borrowed) * math.Sqrt(f.apart(i, of))
				out.of[s][key.kind] = figureAround(f.value[i], arm, int(own[i].n))
			}
		}
		out.beside[s] = c.beside(f, s)
	}
	return out
}

// apart is the variance of what column i differs by from the mean of columns, as that
// of one estimate.
func (f *fitted) apart(i int, of []int) float64 {
	n := float64(len(of))
	if n < 2 {
		return f.covariance[i][i]
	}
	with, all := 0.0, 0.0
	for _, a := range of {
		with += f.covariance[i][a] / n
		for _, b := range of {
			all += f.covariance[a][b] / n / n
		}
	}
	return max(0, f.covariance[i][i]-2*with+all) * n / (n - 1)
}

// beside is how much more CPU time a side takes where other logins are beside it.
func (c columns) beside(f *fitted, s side) Figure {
	var of []int
	for key, i := range c {
		if key.side == s && key.kind == anyKind {
			of = append(of, i)
		}
	}
	if len(of) == 0 {
		return Figure{}
	}
	n := float64(len(of))
	value, variance := 0.0, 0.0
	for _, a := range of {
		value += f.value[a] / n
		for _, b := range of {
			variance += f.covariance[a][b] / n / n
		}
	}
	return figureAround(value, stats.StudentQuantile(math.Inf(1))*math.Sqrt(max(0, variance)), len(of))
}

func figureAround(log, arm float64, n int) Figure {
	exp := func(x float64) float64 { // without what logarithms leave behind the ninth digit
		v := math.Exp(x)
		unit := math.Pow(10, math.Ceil(math.Log10(v))-9)
		return math.Round(v/unit) * unit
	}
	return Figure{exp(log), exp(log - arm), exp(log + arm), n}
}
