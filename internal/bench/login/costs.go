package login

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// side of a login: the client, or the server.
type side int

const sides = 2

// cpu returns the CPU time of a side of a login; 0 is unknown.
func cpu(l *record.Reading, s side) time.Duration {
	if d := [sides]*time.Duration{l.ClientCPUNS, l.ServerCPUNS}[s]; d != nil {
		return *d
	}
	return 0
}

// coreOf returns the core that a login shared with simultaneous ones.
func coreOf(l *record.Reading) int {
	if l.Core == nil {
		return alone
	}
	return *l.Core
}

const (
	alone    = -1  // no core: it ran alone
	inARow   = 10  // logins on one core, about, that other programs slow alike
	samples  = 100 // of the bootstrap
	borrowed = 10  // degrees of freedom that a kind borrows from all others for its variation
)

// costs are CPU times of all kinds of logins.
type costs struct {
	of     [sides]map[kindOf]stats.Interval
	beside [sides]stats.Interval // of simultaneous logins, relative to those alone; nil: there are none
}

// costsOf returns the CPU times of kinds of logins, without the slowdown that logins share with
// others near in time.
func costsOf(kinds []kindOf, logins []*record.Reading) (out costs) {
	for s := range side(sides) {
		out.of[s], out.beside[s] = layoutOf(kinds, logins, s).estimates()
	}
	return out
}

// layout holds one side of logins, as logarithms of CPU time: a column is a kind, and a row some
// consecutive logins on one core, because other programs slow a core for seconds.
type layout struct {
	alone, beside [][]stats.Reading // by rounds
	firstBeside   int               // row
	n             []int             // readings of each kind
}

func layoutOf(kinds []kindOf, logins []*record.Reading, s side) *layout {
	l := &layout{}
	var places [2][]int
	for i, login := range logins {
		for kinds[i] >= len(l.n) {
			l.n = append(l.n, 0)
		}
		if cpu(login, s) <= 0 {
			continue
		}
		l.n[kinds[i]]++
		place := 0
		if coreOf(login) != alone {
			place = 1
		}
		places[place] = append(places[place], i)
	}
	rows := 0
	for place, all := range places {
		slices.SortStableFunc(all, func(a, b int) int { return logins[a].Start.Compare(logins[b].Start) })
		var rounds [][]stats.Reading
		for _, round := range parts(all, l.kinds()) {
			var readings []stats.Reading
			on := map[int][]int{}
			for _, i := range round {
				core := coreOf(logins[i])
				on[core] = append(on[core], i)
			}
			for _, core := range slices.Sorted(maps.Keys(on)) {
				for _, row := range parts(on[core], inARow) {
					for _, i := range row {
						readings = append(readings, stats.Reading{Row: rows, Col: kinds[i], Value: math.Log(float64(cpu(logins[i], s)))})
					}
					rows++
				}
			}
			rounds = append(rounds, readings)
		}
		if place == 0 {
			l.alone, l.firstBeside = rounds, rows
		} else {
			l.beside = rounds
		}
	}
	return l
}

// parts cuts a list into equal parts of about a size.
func parts(all []int, size int) (out [][]int) {
	n := max(1, (len(all)+size/2)/max(1, size))
	for i := range n {
		if part := all[i*len(all)/n : (i+1)*len(all)/n]; len(part) > 0 {
			out = append(out, part)
		}
	}
	return out
}

// kinds counts the kinds with readings.
func (l *layout) kinds() (count int) {
	for _, n := range l.n {
		count += min(n, 1)
	}
	return count
}

// fit returns the logarithm of each kind's cost alone, and of how much more all cost beside others:
// an additive two-way fit. NaN marks kinds without readings.
func (l *layout) fit(readings []stats.Reading) (kinds []float64, beside float64) {
	f := stats.TwoWay(readings, stats.Middle, stats.Middle)
	var levels [2][]float64
	for _, r := range readings {
		place := 0
		if r.Row >= l.firstBeside {
			place = 1
		}
		levels[place] = append(levels[place], f.Rows[r.Row])
	}
	usual := stats.Median(levels[0])
	for k := range l.n {
		if k < len(f.Cols) {
			kinds = append(kinds, f.Cols[k]+usual)
		} else {
			kinds = append(kinds, math.NaN())
		}
	}
	if len(levels[0]) == 0 || len(levels[1]) == 0 {
		return kinds, math.NaN()
	}
	return kinds, stats.Median(levels[1]) - usual
}

// estimates returns the figures. An interval relates a kind to all others of that side: it does not
// include the level of the computer in the whole run, unless there is one kind only.
func (l *layout) estimates() (of map[kindOf]stats.Interval, beside stats.Interval) {
	kinds, more := l.fit(slices.Concat(slices.Concat(l.alone...), slices.Concat(l.beside...)))
	var mores, known []float64
	errs, _ := stats.Beside(stats.Bootstrap(samples, func(random *rand.Rand) []float64 {
		kinds, more := l.fit(slices.Concat(drawn(random, l.alone), drawn(random, l.beside)))
		if !math.IsNaN(more) {
			mores = append(mores, more)
		}
		return kinds
	}))
	for _, err := range errs {
		if err > 0 {
			known = append(known, err)
		}
	}
	degrees := max(0, float64(len(l.alone)-1)) + max(0, float64(len(l.beside)-1))
	others := degrees * float64(len(known))
	usual := stats.Median(known) / math.Pow(1-2/(9*max(1, degrees)), 1.5) // of a chi-square relative to its mean (Wilson and Hilferty, PNAS 17, 1931)
	of = map[kindOf]stats.Interval{}
	for k, log := range kinds {
		if l.n[k] > 0 {
			err, df := stats.Shrink(errs[k], degrees, usual, min(borrowed, max(0, others-degrees)))
			of[k] = nanoseconds(stats.Estimate{Log: log, Err: err, DF: df, N: l.n[k]})
		}
	}
	if len(l.beside) > 0 && !math.IsNaN(more) {
		beside = stats.Estimate{Log: more, Err: stats.Scale(mores, stats.Median(mores)), DF: degrees, N: len(l.beside)}.Interval()
	}
	return of, beside
}

// nanoseconds returns an interval in whole nanoseconds.
func nanoseconds(e stats.Estimate) stats.Interval {
	return e.Interval().Mapped(math.Round)
}

// drawn returns a sample of rounds.
func drawn(random *rand.Rand, rounds [][]stats.Reading) (sample []stats.Reading) {
	if len(rounds) == 0 {
		return nil
	}
	for i, times := range stats.Resample(random, len(rounds)) {
		for range times {
			sample = append(sample, rounds[i]...)
		}
	}
	return sample
}
