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
	Deviation   float64  // relative standard deviation between connections, beyond that of their slices
	Degrees     float64  // degrees of freedom of the errors
	Interaction float64  // relative deviation of cells from their prediction, beyond noise
	Parameters  int
	Drift       []float64 // relative level of each stretch of the run, in logs
	Level       float64   // standard error of the run's mean level, common to all figures
	Strays      int       // connections that were left out, because they contradict others of their cell

	own       []float64 // deviation between the connections of each cell
	alone     []bool    // cells that stand for themselves, and for nothing else
	etm       bool      // applying a MAC to the ciphertext has an effect
	uncertain bool      // the errors of predictions come from elsewhere than the residuals
}

// observation is one connection's value of one quantity.
type observation struct {
	cell     int
	stretch  int
	log      float64
	variance float64 // that its slices leave; 0 for a copy
	holdout  bool
	chancy   bool // luck has its part in it
}

// observations are all of one quantity.
type observations struct {
	list      []observation
	stretches int
	apart     float64 // standard error that cells with the same cipher or MAC share, which nothing in their figures shows
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
	passes   = 4
	maxLevel = 0.4 // a stretch is not believed to be slower or faster by more, in logs
	// surprising is how many standard errors one of a few figures may be off, and
	// contradicting how many a cell may lie from its prediction: of a hundred, one is three
	// off by chance in every other run.
	surprising    = 3.0
	contradicting = 4.0
)

// fitSeries alternates between the cells' means, the model that predicts them,
// and the level of the machine in each stretch of the run.
func fitSeries(cells []alg.Suite, in observations, predict predictor, uncertain bool) Series {
	s := Series{uncertain: uncertain, Figures: make([]Figure, len(cells)), Drift: make([]float64, in.stretches), Interaction: 0.01}
	prior := priorOf(in.list, uncertain)
	s.deviate(prior.deviation)
	held := holdouts(in.list, len(cells))
	s.etm = true // until the fit says otherwise
	var obs []observation
	for range passes {
		obs = s.withoutStrays(in.list)
		s.means(obs)
		s.alone = s.standAlone(cells)
		classes := equivalents(cells, s.etm)
		points, at := s.points(cells, classes, held)
		f := predict(points, at)
		s.Parameters, s.etm = f.parameters, s.etm && f.etm
		s.spread(prior, cells, classes, obs, s.residuals(points, at, f))
		for _, same := range classes {
			predicted := f
			if s.alone[same[0]] {
				predicted.all, predicted.others = unpredicted, unpredicted
			}
			s.estimate(same, held, predicted, slices.Contains(at, same[0]))
		}
		if in.stretches > 1 {
			s.levels(obs)
		}
	}
	for i := range s.Figures {
		f := &s.Figures[i]
		if uncertain { // how a cell departs from its costs is not the same in every run
			f.Repeat = f.Err
		}
		f.own, f.Err, f.Repeat = f.Err, math.Hypot(f.Err, in.apart), math.Hypot(f.Repeat, in.apart)
	}
	s.Strays = len(in.list) - len(obs)
	return s
}

const (
	// straying is how many standard errors a connection lies off the others to be none of
	// them: of 750 ssh processes with 3DES, three cost 38 to 48 % more for as long as they
	// lived, and of 5,300 others none did.
	straying = 8.0
	// telling is how many connections it takes to tell which of them is the odd one.
	telling = 3
)

// withoutStrays leaves out the connections that contradict the others of their cell. A
// single one stays whatever it says: nothing tells it from a cell that is so.
func (s *Series) withoutStrays(obs []observation) []observation {
	of := map[int][]float64{}
	for _, o := range obs {
		if o.variance > 0 { // a transfer by itself has no slices to tell its error by
			of[o.cell] = append(of[o.cell], s.freed(o))
		}
	}
	usual := map[int]float64{}
	for cell, logs := range of {
		if len(logs) >= telling {
			usual[cell] = stats.Median(logs)
		}
	}
	return slices.DeleteFunc(slices.Clone(obs), func(o observation) bool {
		log, ok := usual[o.cell]
		return ok && o.variance > 0 && math.Abs(s.freed(o)-log) > straying*math.Sqrt(s.variance(o))
	})
}

// enoughOthers is how many other cells it takes to tell wall times from costs without the
// fastest.
const enoughOthers = 6

// standAlone tells AEAD ciphers whose wall time many connections show: costs foretell that
// of others, if there are enough. The fastest lose most by both sides waking each other up.
func (s *Series) standAlone(cells []alg.Suite) []bool {
	out, others := make([]bool, len(cells)), 0
	for i, f := range s.Figures {
		out[i] = s.uncertain && f.isWellKnown(cells[i])
		others += one(f.N > 0 && !out[i])
	}
	if others < enoughOthers {
		clear(out)
	}
	return out
}

// isWellKnown tells an AEAD cipher with many connections that moved data in slices.
func (f Figure) isWellKnown(cell alg.Suite) bool {
	return cell.MAC == "" && f.N >= manyConnections && f.within > 0
}

// unpredicted predicts nothing.
func unpredicted(int) (log, err float64, ok bool) { return 0, 0, false }

func holdouts(obs []observation, cells int) []bool {
	held := make([]bool, cells)
	for _, o := range obs {
		held[o.cell] = held[o.cell] || o.holdout
	}
	return held
}

// freed is the logarithm of an observation without the level of the machine.
func (s *Series) freed(o observation) float64 { return o.log - s.Drift[o.stretch] }

// variance of an observation around its cell.
func (s *Series) variance(o observation) float64 {
	return o.variance + s.own[o.cell]*s.own[o.cell]
}

// deviate sets the deviation between connections, the same for all cells.
func (s *Series) deviate(deviation float64) {
	s.Deviation, s.own = deviation, slices.Repeat([]float64{deviation}, len(s.Figures))
}

// means gives each cell the weighted mean of its connections.
func (s *Series) means(obs []observation) {
	sums := make([]struct{ weight, value, within float64 }, len(s.Figures))
	for i := range s.Figures {
		s.Figures[i].N = 0
	}
	for _, o := range obs {
		weight := 1 / s.variance(o)
		sum := &sums[o.cell]
		sum.weight += weight
		sum.value += weight * s.freed(o)
		sum.within += o.variance
		s.Figures[o.cell].chancy = o.chancy
		s.Figures[o.cell].N++
	}
	for i, sum := range sums {
		f := &s.Figures[i]
		f.Measured, f.Own, f.within = 0, 0, 0
		if f.N > 0 {
			f.Measured, f.Own, f.within = sum.value/sum.weight, 1/math.Sqrt(sum.weight), sum.within/float64(f.N)
		}
	}
}

// points are the measured cells that may be fitted, those that are the same
// computation as one; at is the first cell of each.
func (s *Series) points(cells []alg.Suite, classes [][]int, held []bool) (points []Point, at []int) {
	for _, same := range classes {
		fitted := slices.DeleteFunc(slices.Clone(same), func(i int) bool { return held[i] })
		if together := s.pool(fitted); together.N > 0 && !s.alone[same[0]] {
			points = append(points, Point{
				Cell: cells[same[0]], Log: together.Measured, Variance: s.Interaction*s.Interaction + together.Own*together.Own,
				n: float64(together.N), within: together.within,
			})
			at = append(at, same[0])
		}
	}
	return points, at
}

// spread estimates the deviation between connections, and that of cells from
// their prediction: connections of one computation differ by what they have of their own
// alone. AEAD ciphers with many connections have a deviation of their own: the fastest wait
// for memory, and where a connection's buffers lie matters to nothing as much.
func (s *Series) spread(prior prior, cells []alg.Suite, classes [][]int, obs []observation, residuals []residual) {
	v := variances{prior: prior, residuals: residuals}
	var offs []float64
	many := map[int][]deviation{}
	same := make([]Figure, len(s.Figures))
	for _, class := range classes {
		together := s.pool(class)
		for _, i := range class {
			same[i] = together
		}
	}
	for _, o := range obs {
		n, off := same[o.cell].N, s.freed(o)-same[o.cell].Measured
		d := deviation{off: off, variance: o.variance, share: 1 - 1/float64(n)}
		switch {
		case s.Figures[o.cell].isWellKnown(cells[o.cell]):
			many[o.cell] = append(many[o.cell], d)
		case n > 1:
			offs, v.within = append(offs, off), append(v.within, d)
		}
	}
	for i, off := range winsorised(offs) {
		v.within[i].off = off
	}
	deviation, interaction := v.estimate()
	s.deviate(deviation)
	s.Interaction, s.Degrees = interaction, v.degrees(deviation)
	for cell, ds := range many {
		s.own[cell] = moderated(deviation, ds)
	}
}

// residuals of the fitted cells. What the fit took from their size, by its
// parameters, is given back. AEAD cells have a parameter each, and no residual.
func (s *Series) residuals(points []Point, at []int, f fit) []residual {
	var offs []float64
	var kept []residual
	for k, p := range points {
		log, err, ok := f.all(at[k])
		if !ok || p.Cell.MAC == "" && log == p.Log {
			continue
		}
		r := residual{n: p.n, within: p.within}
		if s.uncertain {
			r.uncertainty = err * err
		}
		offs, kept = append(offs, p.Log-log), append(kept, r)
	}
	free := len(kept) - (f.parameters - (len(points) - len(kept)))
	if free < 4 {
		return nil
	}
	groups := map[[2]int]*residual{}
	for k, off := range winsorised(offs) {
		r := kept[k]
		id := [2]int{int(math.Round(3 * math.Log2(r.n))), int(math.Round(2 * math.Log2(r.within+1e-9)))}
		if groups[id] == nil {
			groups[id] = &residual{share: float64(free) / float64(len(kept))}
		}
		groups[id].add(off, r)
	}
	var out []residual
	for _, id := range slices.SortedFunc(maps.Keys(groups), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		out = append(out, groups[id].mean())
	}
	return out
}

func (r *residual) add(off float64, o residual) {
	r.count++
	r.squares += off * off
	r.n += o.n
	r.within += o.within
	r.uncertainty += o.uncertainty
}

// mean is a group with the means of its sums.
func (r residual) mean() residual {
	r.n, r.within, r.uncertainty = r.n/r.count, r.within/r.count, r.uncertainty/r.count
	return r
}
