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
	Repeat    float64 // standard deviation of Log over repeated runs: what is Err's, but the same in each of them, is left out
	N         int     // connections measured; 0: predicted
	Basis     int     // those of all cells that share the best estimate
	Measured  float64 // their mean, freed of the machine's level; 0 if N is 0
	Own       float64 // standard error of Measured
	Predicted float64 // from other cells only
	Error     float64 // standard error of Predicted, the cell's own deviation included
	Foretold  bool    // Predicted is set
	Shared    int     // cells that are the same computation and have this best estimate together; at least 1
	// Slowed is how much of Log is other guests' doing: what the machine's best moments
	// would take off it. N is 0 where slices do not show it.
	Slowed stats.Estimate

	own    float64 // Err without what other cells with its cipher or MAC share
	within float64 // mean variance of the connections by their slices
	chancy bool    // luck has its part in the measurement
	sway   float64 // part of Error that is not the cell's own deviation
}

// Surprise is how many standard errors a cell's measurement lies from what the
// other cells predict: a large one asks for another measurement.
func (f Figure) Surprise() float64 {
	if !f.Foretold || f.N == 0 {
		return 0
	}
	return math.Abs(f.Measured-f.Predicted) / math.Hypot(f.Error, f.Own)
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
		f.Predicted, f.Error, f.sway = log, math.Hypot(err, interaction), err
	}
}

// combine weighs measurement and prediction. Where they disagree by far more
// than both errors allow, the model does not hold for this cell; a single copy may
// have been disturbed, and a few steady parts of slices been lucky: these count less until there
// are more.
func (f *Figure) combine() {
	f.Known = true
	switch {
	case f.N == 0 && !f.Foretold:
		f.Known = false
	case f.N == 0:
		f.Log, f.Err, f.Repeat = f.Predicted, f.Error, f.sway
	case !f.Foretold:
		f.Log, f.Err, f.Repeat = f.Measured, f.Own, f.Own
	default:
		measured, predicted := f.Own*f.Own, f.Error*f.Error
		if off := f.Measured - f.Predicted; f.Surprise() > contradicting {
			if !f.chancy && (f.N > 1 || f.within > 0) {
				predicted = math.Max(predicted, off*off-measured)
			} else {
				measured = math.Max(measured, off*off/surprising)
			}
		}
		share := predicted / (measured + predicted) // of the measurement
		f.Log = share*f.Measured + (1-share)*f.Predicted
		f.Err = math.Sqrt(share * measured)
		f.Repeat = math.Hypot(share*f.Own, (1-share)*f.sway)
	}
}

// levels estimates the level of the machine in each stretch of the run from
// all its connections, shrunk by how well it is known. The usual level is zero.
func (s *Series) levels(obs []observation) {
	values, weights := make([][]float64, len(s.Drift)), make([]float64, len(s.Drift))
	for _, o := range obs {
		if expected, ok := s.Figures[o.cell].others(); ok && !o.holdout {
			values[o.stretch] = append(values[o.stretch], o.log-expected)
			weights[o.stretch] += 1 / s.variance(o)
		}
	}
	raw, errors := make([]float64, len(s.Drift)), make([]float64, len(s.Drift))
	var known []float64
	noise := 0.0
	for k, xs := range values {
		if len(xs) > 0 {
			raw[k], errors[k] = stats.Median(xs), math.Pi/2/weights[k]
			known = append(known, raw[k])
			noise += errors[k]
		}
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
