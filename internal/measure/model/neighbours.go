package model

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

const (
	reach          = 4    // slices before and after one that tell how disturbed it was
	clipLow        = 0.02 // quantiles beyond which a slice counts as these
	clipHigh       = 0.95
	minNeighboured = 8 // slices of a connection that tell how much its slices vary
)

// deviant is one slice: by how many deviations of its connection's slices it is off.
type deviant struct {
	sample *sample
	k      int
	off    float64
}

// follow takes out of every slice what the slices just before and after it, of
// other connections, tell about it: neighbours on the machine come and go within
// milliseconds to seconds, and slices in a row suffer alike, each in proportion to how much
// slices of its connection vary. About a third of the variance goes.
func follow(samples []sample) {
	row := inARow(samples)
	levels := levelsOf(row)
	slope := slopeOn(row, levels)
	for i, d := range row {
		d.sample.logs[d.k] -= slope * d.sample.spread * levels[i]
	}
	for i := range samples {
		samples[i].locate()
	}
}

// inARow are the slices of all samples in the order of time.
func inARow(samples []sample) []deviant {
	var row []deviant
	for i := range samples {
		s := &samples[i]
		clipped := s.clipped()
		if s.spread = math.Sqrt(stats.Variance(clipped)); s.spread == 0 {
			continue
		}
		for k, x := range clipped {
			row = append(row, deviant{s, k, (x - s.centre) / s.spread})
		}
	}
	slices.SortFunc(row, func(a, b deviant) int { return cmp.Compare(a.sample.places[a.k], b.sample.places[b.k]) })
	return row
}

// clipped are the slices without outliers; none where there are few.
func (s *sample) clipped() []float64 {
	if len(s.logs) < minNeighboured {
		return nil
	}
	lo, hi := stats.Quantile(s.logs, clipLow), stats.Quantile(s.logs, clipHigh)
	out := make([]float64, len(s.logs))
	for i, x := range s.logs {
		out[i] = math.Max(lo, math.Min(hi, x))
	}
	return out
}

// levelsOf are the means of every slice's neighbours, around the usual one.
func levelsOf(row []deviant) []float64 {
	levels := make([]float64, len(row))
	for i, d := range row {
		sum, n := 0.0, 0.0
		for j := max(0, i-reach); j <= min(len(row)-1, i+reach); j++ {
			if row[j].sample != d.sample {
				sum += row[j].off
				n++
			}
		}
		if n > 0 {
			levels[i] = sum / n
		}
	}
	usual := location(slices.Sorted(slices.Values(levels)))
	for i := range levels {
		levels[i] -= usual
	}
	return levels
}

// slopeOn is by how much slices follow their neighbours, never less than nothing.
func slopeOn(row []deviant, levels []float64) float64 {
	offs := make([]float64, len(row))
	for i, d := range row {
		offs[i] = d.off
	}
	return math.Max(0, stats.Proportion(levels, offs))
}
