package model

import (
	"math"
	"slices"

	"sshpace/internal/alg"
	"sshpace/internal/stats"
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
	Measured  float64 // their mean, freed of the machine's drift; 0 if N is 0
	Predicted float64 // from other cells only
	Error     float64 // standard error of Predicted, the cell's own deviation included
	Foretold  bool    // Predicted is set
}

// Surprise is how many standard errors a cell's measurement lies from what the
// other cells predict: a large one asks for another measurement.
func (f Figure) Surprise(deviation float64) float64 {
	if !f.Foretold || f.N == 0 {
		return 0
	}
	return math.Abs(f.Measured-f.Predicted) / math.Sqrt(f.Error*f.Error+deviation*deviation/float64(f.N))
}

// Series holds the figures of one quantity, over all cells of one direction.
type Series struct {
	Figures     []Figure // in the order of the cells given
	Deviation   float64  // relative standard deviation between connections
	Degrees     float64  // degrees of freedom of Deviation
	Interaction float64  // relative deviation of cells from their prediction, beyond noise
	Parameters  int
	Drift       []float64 // relative level of each stretch of the run, in logs
	Level       float64   // standard error of the run's mean level, common to all figures

	uncertain bool // the errors of predictions come from elsewhere than the residuals
}

// observation is one connection's value of one quantity.
type observation struct {
	cell    int
	stretch int
	log     float64
	holdout bool
}

// predictor fits the points and returns functions that predict cell i: from
// all points, and from all points but its own.
type predictor func(points []Point, at []int) (all, others predictAt, parameters int)

type predictAt func(cell int) (log, err float64, ok bool)

const (
	// The deviation between connections that is assumed before any cell was
	// measured twice, and the degrees of freedom that this guess is worth.
	priorDeviation = 0.03
	priorDegrees   = 2.0
	passes         = 4
	// surprising is how many standard errors a cell may lie from its prediction.
	surprising = 3.0
)

// fitSeries alternates between the cells' means, the model that predicts them,
// and the level of the machine in each stretch of the run.
func fitSeries(cells []alg.Suite, obs []observation, stretches int, predict predictor, uncertain bool) Series {
	s := Series{uncertain: uncertain, Figures: make([]Figure, len(cells)), Drift: make([]float64, stretches), Interaction: 0.01}
	s.Deviation, s.Degrees = priorDeviation, priorDegrees
	held := holdouts(obs, len(cells))
	for range passes {
		s.means(obs)
		points, at := s.points(cells, held)
		all, others, parameters := predict(points, at)
		s.Parameters = parameters
		s.spread(obs, points, at, all, parameters)
		for i := range s.Figures {
			s.Figures[i].foretell(i, held[i], all, others, s.Interaction)
			s.Figures[i].combine(s.Deviation)
		}
		s.levels(obs)
	}
	return s
}

func holdouts(obs []observation, cells int) []bool {
	held := make([]bool, cells)
	for _, o := range obs {
		held[o.cell] = held[o.cell] || o.holdout
	}
	return held
}

// means gives each cell the robust mean of its connections.
func (s *Series) means(obs []observation) {
	values := make([][]float64, len(s.Figures))
	for _, o := range obs {
		values[o.cell] = append(values[o.cell], o.log-s.Drift[o.stretch])
	}
	for i, xs := range values {
		s.Figures[i].N = len(xs)
		if len(xs) > 0 {
			s.Figures[i].Measured = huberMean(xs, s.Deviation)
		}
	}
}

// huberMean is the mean of xs in which values far from the rest count less
// (Huber, Annals of Mathematical Statistics 35, 1964).
func huberMean(xs []float64, deviation float64) float64 {
	mean := stats.Median(xs)
	if len(xs) < 3 {
		return mean
	}
	for range reweights {
		sum, weights := 0.0, 0.0
		for _, x := range xs {
			weight := 1.0
			if z := math.Abs(x-mean) / deviation; z > 1.5 {
				weight = 1.5 / z
			}
			sum += weight * x
			weights += weight
		}
		mean = sum / weights
	}
	return mean
}

// points are the measured cells that may be fitted.
func (s *Series) points(cells []alg.Suite, held []bool) (points []Point, at []int) {
	for i, f := range s.Figures {
		if f.N > 0 && !held[i] {
			variance := s.Interaction*s.Interaction + s.Deviation*s.Deviation/float64(f.N)
			points = append(points, Point{cells[i], f.Measured, variance})
			at = append(at, i)
		}
	}
	return points, at
}

// spread estimates the deviation between connections, and that of cells from
// their prediction.
func (s *Series) spread(obs []observation, points []Point, at []int, all predictAt, parameters int) {
	var v variances
	var deviations []float64
	for _, o := range obs {
		if n := float64(s.Figures[o.cell].N); n > 1 {
			deviations = append(deviations, o.log-s.Drift[o.stretch]-s.Figures[o.cell].Measured)
		}
	}
	for _, f := range s.Figures {
		v.degrees += float64(max(0, f.N-1))
	}
	for _, d := range winsorised(deviations) {
		v.within += d * d
	}
	v.groups = s.residuals(points, at, all, parameters)
	s.Deviation, s.Interaction = v.estimate()
	s.Degrees = priorDegrees + v.degrees
	for _, g := range v.groups {
		s.Degrees += g.count / 2 // they tell noise and interaction only together
	}
}

// residuals sorts the residuals of the fitted cells by their connections. What
// the fit took from their size, by its parameters, is given back. AEAD cells
// have a parameter each, and no residual.
func (s *Series) residuals(points []Point, at []int, all predictAt, parameters int) []residuals {
	var logs, uncertain []float64
	var counts []int
	for k, p := range points {
		log, err, ok := all(at[k])
		if !ok || p.Cell.MAC == "" && log == p.Log {
			continue
		}
		logs, counts = append(logs, p.Log-log), append(counts, s.Figures[at[k]].N)
		uncertain = append(uncertain, err)
	}
	free := len(logs) - (parameters - (len(points) - len(logs)))
	if free < 4 {
		return nil
	}
	groups := make([]residuals, 1+slices.Max(counts))
	back := float64(len(logs)) / float64(free)
	for k, r := range winsorised(logs) {
		g := &groups[counts[k]]
		g.n, g.count = float64(counts[k]), g.count+1/back
		g.squares += r * r
		if s.uncertain {
			g.uncertainty += uncertain[k] * uncertain[k]
		}
	}
	for i := range groups {
		if groups[i].count > 0 {
			groups[i].uncertainty /= groups[i].count * back
		}
	}
	return slices.DeleteFunc(groups, func(g residuals) bool { return g.count == 0 })
}

// foretell sets the prediction of a cell from the other cells.
func (f *Figure) foretell(i int, held bool, all, others predictAt, interaction float64) {
	from := all
	if f.N > 0 && !held {
		from = others
	}
	log, err, ok := from(i)
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
		f.Log, f.Err = f.Measured, deviation/math.Sqrt(float64(f.N))
	default:
		measured := deviation * deviation / float64(f.N)
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
// all its connections, shrunk by how well it is known. The mean level is zero.
func (s *Series) levels(obs []observation) {
	residuals := make([][]float64, len(s.Drift))
	for _, o := range obs {
		if f := s.Figures[o.cell]; !o.holdout && (f.Foretold || f.N > 1) {
			residuals[o.stretch] = append(residuals[o.stretch], o.log-f.Log)
		}
	}
	raw, noise := make([]float64, len(residuals)), 0.0
	var known []float64
	for k, rs := range residuals {
		if len(rs) > 0 {
			raw[k] = huberMean(rs, s.Deviation)
			known = append(known, raw[k])
			noise += s.Deviation * s.Deviation / float64(len(rs))
		}
	}
	if len(known) < 2 {
		return
	}
	centre := stats.Mean(known)
	s.Level = math.Sqrt(stats.Variance(known) / float64(len(known)))
	between := math.Max(0, stats.Variance(known)-noise/float64(len(known)))
	for k, rs := range residuals {
		weight := 0.0
		if len(rs) > 0 {
			weight = between / (between + s.Deviation*s.Deviation/float64(len(rs)))
		}
		if math.IsNaN(weight) {
			weight = 0
		}
		s.Drift[k] = weight * (raw[k] - centre)
	}
}

// additive predicts costs from the costs of other cells.
func additive(cells []alg.Suite) predictor {
	return func(points []Point, at []int) (all, others predictAt, parameters int) {
		m := FitAdditive(points)
		all = func(i int) (float64, float64, bool) { return m.Predict(cells[i]) }
		others = func(i int) (float64, float64, bool) {
			k, found := slices.BinarySearch(at, i)
			if !found {
				return m.Predict(cells[i])
			}
			return m.Without(points[k])
		}
		return all, others, m.Parameters
	}
}
