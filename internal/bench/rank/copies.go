package rank

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// samplesOf sorts copies by cell: by their names, or by their computations.
func (d *data) samplesOf(cell func(record.Trial) record.Cell) map[record.Cell][]record.Sample {
	out := map[record.Cell][]record.Sample{}
	for _, c := range d.copies {
		out[cell(c.Trial)] = append(out[cell(c.Trial)], c.Sample)
	}
	return out
}

// summarize returns the seconds of every combination of an exhaustive run, in the order of its
// names.
func (d *data) summarize() []Copy {
	samples := d.samplesOf(func(t record.Trial) record.Cell { return record.Cell{Suite: t.Asked(), Direction: t.Direction} })
	keys := slices.SortedFunc(maps.Keys(samples), func(a, b record.Cell) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Suite.String(), b.Suite.String()))
	})
	groups := make([][]float64, len(keys))
	for i, k := range keys {
		for _, s := range samples[k] {
			groups[i] = append(groups[i], math.Log(s.ElapsedNS.Seconds()))
		}
	}
	var out []Copy
	for i, e := range alike(groups) {
		out = append(out, Copy{keys[i].Suite, keys[i].Direction, e.WithError(clockError(samples[keys[i]]), 0).Interval()})
	}
	return out
}

// clockError returns the standard error that the clocks of some samples leave in the logarithm of
// their mean time. Readings of a clock that rounds down are all too short, so that more of them do
// not help; 95 % of the range between the bounds is the interval.
func clockError(samples []record.Sample) float64 {
	var lo, hi time.Duration
	for _, s := range samples {
		if s.ElapsedHiNS > 0 {
			lo, hi = lo+s.ElapsedLoNS, hi+s.ElapsedHiNS
		} else {
			lo, hi = lo+s.ElapsedNS, hi+s.ElapsedNS
		}
	}
	if hi <= lo || lo+hi <= 0 {
		return 0
	}
	return stats.Confidence * float64(hi-lo) / float64(hi+lo) / stats.Estimate{Err: 1}.Arm()
}

// addResolution adds the clock error of an imported log.
func (d *data) addResolution(a *model.Analysis) {
	for cell, samples := range d.samplesOf(record.Trial.Cell) {
		if i := slices.Index(a.Cells, cell.Suite); cell.Direction == a.Direction && i >= 0 {
			f := &a.Wall.Figures[i]
			f.Err = math.Hypot(f.Err, clockError(samples))
		}
	}
}

// coarsest describes the error of the coarsest clock of a file; "" where all are exact.
func (d *data) coarsest() string {
	var most time.Duration
	for _, c := range d.copies {
		most = max(most, c.Sample.ElapsedHiNS-c.Sample.ElapsedLoNS)
	}
	if most < 100*time.Millisecond {
		return ""
	}
	return fmt.Sprintf("the log's clock is exact to %s of each time; the intervals of copies include that", most.Round(10*time.Millisecond))
}
