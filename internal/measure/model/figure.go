package model

import (
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Figure is what is known about one quantity of one cell, as a natural
// logarithm. Where a cell was measured and can be predicted from the others,
// Log weighs both by their variances, as an empirical Bayes estimate does (Efron
// and Morris, JASA 70, 1975): with one or two connections per cell it is far
// closer to the truth than the measurement alone.
type Figure struct {
	Known     bool
	Log, Err  float64 // best estimate and its standard error
	N         int     // connections measured; 0: predicted
	Weight    float64 // what they are worth in clean connections: at most N
	Measured  float64 // their mean, freed of the machine's drift; 0 if N is 0
	Predicted float64 // from other cells only
	Error     float64 // standard error of Predicted, the cell's own deviation included
	Foretold  bool    // Predicted is set
	Shared    int     // cells that are the same computation and have this best estimate together; at least 1
}

// Surprise is how many standard errors a cell's measurement lies from what the
// other cells predict: a large one asks for another measurement.
func (f Figure) Surprise(deviation float64) float64 {
	if !f.Foretold || f.N == 0 {
		return 0
	}
	return math.Abs(f.Measured-f.Predicted) / math.Sqrt(f.Error*f.Error+deviation*deviation/f.Weight)
}

// others is what a single connection of the cell is expected to show, as far
// as possible without the connection itself: a residual against an estimate that
// follows the connection would be too small.
func (f Figure) others() (log float64, ok bool) {
	if f.Foretold {
		return f.Predicted, true
	}
	return f.Measured, f.N > 2
}

// foretell sets the prediction of a cell.
func (f *Figure) foretell(i int, predict predictAt, interaction float64) {
	log, err, ok := predict(i)
	f.Foretold = ok
	if ok {
		f.Predicted, f.Error = log, math.Hypot(err, interaction)
	}
}

// combine weighs measurement and prediction. Where they disagree by far more
// than both errors allow, two connections that agree with each other mean that
// the model does not hold for this cell; a single one may have been disturbed, and
// counts less until another has been made.
func (f *Figure) combine(deviation float64) {
	f.Known = true
	switch {
	case f.N == 0 && !f.Foretold:
		f.Known = false
	case f.N == 0:
		f.Log, f.Err = f.Predicted, f.Error
	case !f.Foretold:
		f.Log, f.Err = f.Measured, deviation/math.Sqrt(f.Weight)
	default:
		measured := deviation * deviation / f.Weight
		predicted := f.Error * f.Error
		if off := f.Measured - f.Predicted; f.Surprise(deviation) > surprising {
			if f.N > 1 {
				predicted = math.Max(predicted, off*off-measured)
			} else {
				measured = math.Max(measured, off*off/surprising)
			}
		}
		f.Log = (f.Measured*predicted + f.Predicted*measured) / (measured + predicted)
		f.Err = math.Sqrt(measured * predicted / (measured + predicted))
	}
}

// levels estimates the level of the machine in each stretch of the run from
// all its connections, shrunk by how well it is known. The usual level is zero.
func (s *Series) levels(obs []observation) {
	values, weights := make([][]float64, len(s.Drift)), make([][]float64, len(s.Drift))
	for _, o := range obs {
		if expected, ok := s.Figures[o.cell].others(); ok && !o.holdout {
			values[o.stretch] = append(values[o.stretch], s.freed(o)+s.Drift[o.stretch]-expected)
			weights[o.stretch] = append(weights[o.stretch], s.nuisance.weight(o))
		}
	}
	raw, errors := make([]float64, len(s.Drift)), make([]float64, len(s.Drift))
	var known []float64
	noise := 0.0
	for k, xs := range values {
		if len(xs) == 0 {
			continue
		}
		weight := 0.0
		for _, w := range weights[k] {
			weight += w
		}
		raw[k] = huberMean(xs, weights[k], s.Deviation)
		errors[k] = s.Deviation * s.Deviation / weight
		known = append(known, raw[k])
		noise += errors[k]
	}
	if len(known) < 2 {
		return
	}
	centre := stats.Median(known)
	scale := stats.Scale(known, centre)
	s.Level = scale / math.Sqrt(float64(len(known)))
	between := math.Max(0, scale*scale-noise/float64(len(known)))
	for k := range s.Drift {
		s.Drift[k] = 0
		if errors[k] > 0 {
			off := math.Max(-maxLevel, math.Min(maxLevel, raw[k]-centre))
			s.Drift[k] = between / (between + errors[k]) * off
		}
	}
}

// additive predicts costs from the costs of other cells.
func additive(cells []alg.Suite) predictor {
	return func(points []Point, at []int) fit {
		m := FitAdditive(points)
		all := func(i int) (float64, float64, bool) { return m.Predict(cells[i]) }
		others := func(i int) (float64, float64, bool) {
			k, found := slices.BinarySearch(at, i)
			if !found {
				return m.Predict(cells[i])
			}
			return m.Without(points[k])
		}
		return fit{all, others, m.Parameters, m.ETM}
	}
}
