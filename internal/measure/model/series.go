package model

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Series holds the figures of one quantity, over all cells of one direction.
type Series struct {
	Figures     []Figure // in the order of the cells given
	Deviation   float64  // relative standard deviation between connections
	Degrees     float64  // degrees of freedom of Deviation
	Interaction float64  // relative deviation of cells from their prediction, beyond noise
	Parameters  int
	Drift       []float64 // relative level of each stretch of the run, in logs
	Controls    []float64 // A/A differences in units of their standard error: deviations near 1
	Level       float64   // standard error of the run's mean level, common to all figures

	etm       bool // applying a MAC to the ciphertext has an effect
	uncertain bool // the errors of predictions come from elsewhere than the residuals
	nuisance  nuisance
}

// observation is one connection's value of one quantity.
type observation struct {
	cell    int
	stretch int
	log     float64
	holdout bool
	pair    int        // of the A/A control that it is half of; 0: none
	crowded bool       // other work took a core
	waits   [2]float64 // shares of the time that client and server waited for a core
	speed   float64    // bytes per ns, of the cell as it is known so far
}

// predictor fits points, the cells at.
type predictor func(points []Point, at []int) fit

// fit predicts cells: from all points, and from all points but their own.
type fit struct {
	all, others predictAt
	parameters  int
	etm         bool // applying a MAC to the ciphertext has an effect
}

type predictAt func(cell int) (log, err float64, ok bool)

const (
	// The deviation between connections that is assumed before any cell was
	// measured twice, and the degrees of freedom that this guess is worth.
	priorDeviation = 0.03
	priorDegrees   = 4.0
	passes         = 4
	maxLevel       = 0.4 // a stretch is not believed to be slower or faster by more, in logs
	// surprising is how many standard errors a cell may lie from its prediction.
	surprising = 3.0
)

// fitSeries alternates between the cells' means, the model that predicts them,
// and the level of the machine in each stretch of the run.
func fitSeries(cells []alg.Suite, obs []observation, stretches int, predict predictor, uncertain bool) Series {
	s := Series{uncertain: uncertain, Figures: make([]Figure, len(cells)), Drift: make([]float64, stretches), Interaction: 0.01}
	s.Deviation, s.Degrees = priorDeviation, priorDegrees
	held := holdouts(obs, len(cells))
	s.etm = true // until the fit says otherwise
	for pass := range passes {
		s.means(obs)
		classes := twins(cells, s.etm)
		points, at := s.points(cells, classes, held)
		f := predict(points, at)
		s.Parameters, s.etm = f.parameters, s.etm && f.etm
		s.spread(obs, points, at, f.all, f.parameters)
		for _, same := range classes {
			s.estimate(same, held, f, slices.Contains(at, same[0]))
		}
		s.levels(obs)
		if pass < passes-1 {
			s.disturbances(obs)
		}
	}
	s.Controls = s.controls(obs)
	return s
}

func holdouts(obs []observation, cells int) []bool {
	held := make([]bool, cells)
	for _, o := range obs {
		held[o.cell] = held[o.cell] || o.holdout
	}
	return held
}

// controls compares the two halves of every A/A pair.
func (s *Series) controls(obs []observation) []float64 {
	halves := map[int][]observation{}
	for _, o := range obs {
		if o.pair > 0 {
			halves[o.pair] = append(halves[o.pair], o)
		}
	}
	var out []float64
	for _, id := range slices.Sorted(maps.Keys(halves)) {
		if two := halves[id]; len(two) == 2 && two[0].cell == two[1].cell {
			err := s.Deviation * math.Sqrt(1/s.nuisance.weight(two[0])+1/s.nuisance.weight(two[1]))
			out = append(out, (s.freed(two[1])-s.freed(two[0]))/err)
		}
	}
	return out
}

// freed is the logarithm of an observation without what the machine added.
func (s *Series) freed(o observation) float64 {
	return o.log - s.Drift[o.stretch] - s.nuisance.adjustment(o)
}

// disturbances learns what else moved the connections.
func (s *Series) disturbances(obs []observation) {
	var kept []observation
	var residuals []float64
	for i, o := range obs {
		f := s.Figures[o.cell]
		if obs[i].speed = 0; f.Known {
			obs[i].speed = math.Exp(-f.Log)
		}
		if expected, ok := f.others(); ok && !o.holdout {
			kept, residuals = append(kept, obs[i]), append(residuals, s.freed(o)-expected)
		}
	}
	s.nuisance.learn(kept, residuals, s.Deviation)
}

// means gives each cell the robust mean of its connections.
func (s *Series) means(obs []observation) {
	values, weights := make([][]float64, len(s.Figures)), make([][]float64, len(s.Figures))
	for _, o := range obs {
		values[o.cell] = append(values[o.cell], s.freed(o))
		weights[o.cell] = append(weights[o.cell], s.nuisance.weight(o))
	}
	for i, xs := range values {
		f := &s.Figures[i]
		f.N, f.Weight = len(xs), 0
		for _, w := range weights[i] {
			f.Weight += w
		}
		if len(xs) > 0 {
			f.Measured = huberMean(xs, weights[i], s.Deviation)
		}
	}
}

// huberMean is the weighted mean of xs in which values far from the rest count
// less (Huber, Annals of Mathematical Statistics 35, 1964).
func huberMean(xs, weights []float64, deviation float64) float64 {
	const limit = 1.5
	mean := stats.Median(xs)
	for range reweights {
		sum, total := 0.0, 0.0
		for i, x := range xs {
			weight := weights[i]
			if z := math.Abs(x-mean) * math.Sqrt(weights[i]) / deviation; len(xs) > 2 && z > limit {
				weight *= limit / z
			}
			sum += weight * x
			total += weight
		}
		mean = sum / total
	}
	return mean
}

// spread estimates the deviation between connections, and that of cells from
// their prediction.
func (s *Series) spread(obs []observation, points []Point, at []int, all predictAt, parameters int) {
	var v variances
	var deviations []float64
	for _, o := range obs {
		if f := s.Figures[o.cell]; f.N > 1 {
			deviations = append(deviations, (s.freed(o)-f.Measured)*math.Sqrt(s.nuisance.weight(o)))
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

// points are the measured cells that may be fitted, those that are the same
// computation as one; at is the first cell of each.
func (s *Series) points(cells []alg.Suite, classes [][]int, held []bool) (points []Point, at []int) {
	for _, same := range classes {
		fitted := slices.DeleteFunc(slices.Clone(same), func(i int) bool { return held[i] })
		if together := s.pool(fitted); together.N > 0 {
			variance := s.Interaction*s.Interaction + s.Deviation*s.Deviation/together.Weight
			points = append(points, Point{cells[same[0]], together.Measured, variance, together.Weight})
			at = append(at, same[0])
		}
	}
	return points, at
}

// residuals sorts the residuals of the fitted cells by their connections. What
// the fit took from their size, by its parameters, is given back. AEAD cells
// have a parameter each, and no residual.
func (s *Series) residuals(points []Point, at []int, all predictAt, parameters int) []residuals {
	var logs []float64
	var kept []residuals
	for k, p := range points {
		log, err, ok := all(at[k])
		if !ok || p.Cell.MAC == "" && log == p.Log {
			continue
		}
		r := residuals{n: p.Weight}
		if s.uncertain {
			r.uncertainty = err * err
		}
		logs, kept = append(logs, p.Log-log), append(kept, r)
	}
	free := len(logs) - (parameters - (len(points) - len(logs)))
	if free < 4 {
		return nil
	}
	share := float64(free) / float64(len(logs))
	groups := map[int]*residuals{}
	for k, r := range winsorised(logs) {
		id := int(math.Round(3 * math.Log2(kept[k].n)))
		if groups[id] == nil {
			groups[id] = &residuals{}
		}
		g := groups[id]
		g.n += kept[k].n
		g.uncertainty += kept[k].uncertainty
		g.squares += r * r
		g.count++
	}
	var out []residuals
	for _, id := range slices.Sorted(maps.Keys(groups)) {
		g := groups[id]
		out = append(out, residuals{n: g.n / g.count, count: g.count * share, squares: g.squares, uncertainty: g.uncertainty / g.count})
	}
	return out
}
