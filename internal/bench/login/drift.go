package login

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// What else runs on a computer slows a core for tenths of a second, and for
// seconds. So what is measured at nearly the same time on one core is off by
// nearly the same. That is taken for the sum of two disturbances which forget
// themselves exponentially (Ornstein and Uhlenbeck), one quick and one slow, with
// noise of each reading's own on top; a Kalman filter then tells each reading what
// those before it let expect, and least squares on what is left over give what
// each kind of login takes (generalized least squares).

// reading is the logarithm of one side's CPU time of one login.
type reading struct {
	at     float64 // s, in the middle of the login
	log    float64
	group  int     // what it is of: a column of the regression
	offset int     // a further column: where it was measured; -1 is none
	weight float64 // 1; less where it is far off
	off    float64 // by how much it differs from what is expected, in deviations
}

// drift is how readings are disturbed.
type drift struct {
	quick, slow float64 // variances of the disturbances, as parts of that of the noise
	short, long float64 // s in which they forget themselves
}

// Where the search for a drift begins, and what it tries.
var (
	usualDrift = drift{quick: 1, slow: 1, short: 0.2, long: 3}
	parts      = []float64{0, 0.25, 0.5, 1, 2, 4, 8}
	shorts     = []float64{0.05, 0.1, 0.2, 0.4}
	longs      = []float64{1, 3, 10}
)

// state is what a filter knows of the disturbances: how certain it is of both.
type state struct {
	drift
	at            float64
	began         bool
	pqq, pqs, pss float64 // their covariance
}

// gain is what the filter learns from one reading.
type gain struct {
	fadeQuick, fadeSlow float64 // what is left of the disturbances since the one before
	quick, slow         float64 // how much of what is unexpected belongs to each
	variance            float64 // of what is unexpected, as a part of the noise's
}

// next moves the filter to a reading.
func (s *state) next(r *reading) (g gain) {
	if !s.began {
		s.began, s.pqq, s.pss = true, s.drift.quick, s.drift.slow
	} else {
		g.fadeQuick, g.fadeSlow = math.Exp((s.at-r.at)/s.short), math.Exp((s.at-r.at)/s.long)
		s.pqq = s.drift.quick + g.fadeQuick*g.fadeQuick*(s.pqq-s.drift.quick)
		s.pss = s.drift.slow + g.fadeSlow*g.fadeSlow*(s.pss-s.drift.slow)
		s.pqs *= g.fadeQuick * g.fadeSlow
	}
	s.at = r.at
	q, l := s.pqq+s.pqs, s.pqs+s.pss
	g.variance = q + l + 1/r.weight
	g.quick, g.slow = q/g.variance, l/g.variance
	s.pqq, s.pqs, s.pss = s.pqq-g.quick*q, s.pqs-g.quick*l, s.pss-g.slow*l
	return g
}

// track is what a filter expects of one quantity.
type track struct{ quick, slow float64 }

// see returns what is unexpected of the next value.
func (t *track) see(g *gain, value float64) float64 {
	t.quick, t.slow = t.quick*g.fadeQuick, t.slow*g.fadeSlow
	off := value - t.quick - t.slow
	t.quick, t.slow = t.quick+g.quick*off, t.slow+g.slow*off
	return off
}

// unlikely is how badly a drift explains what is left of readings when that which
// they are of is taken away: minus twice the logarithm of its likelihood, but for
// a constant.
func (d drift) unlikely(series [][]reading, left func(*reading) float64) float64 {
	sum, logs, n := 0.0, 0.0, 0.0
	for _, all := range series {
		s, t := state{drift: d}, track{}
		for i := range all {
			g := s.next(&all[i])
			off := t.see(&g, left(&all[i]))
			sum, logs, n = sum+off*off/g.variance, logs+math.Log(g.variance), n+1
		}
	}
	return n*math.Log(sum/n) + logs
}

// driftOf is the drift that explains best what is left of readings.
func driftOf(series [][]reading, left func(*reading) float64) drift {
	best := usualDrift
	least := best.unlikely(series, left)
	for better := true; better; {
		better = false
		for _, part := range []struct {
			of  func(*drift) *float64
			try []float64
		}{
			{func(d *drift) *float64 { return &d.quick }, parts}, {func(d *drift) *float64 { return &d.slow }, parts},
			{func(d *drift) *float64 { return &d.short }, shorts}, {func(d *drift) *float64 { return &d.long }, longs},
		} {
			for _, value := range part.try {
				d := best
				*part.of(&d) = value
				if u := d.unlikely(series, left); u < least-1e-9 {
					best, least, better = d, u, true
				}
			}
		}
	}
	return best
}

// fitted is the result of a regression.
type fitted struct {
	value      []float64   // of each column
	covariance [][]float64 // of them, in squares of the logarithm
	noise      float64     // variance of a reading's own noise
}

// fit carries the regression out, with the noise that there is, and says by how much
// each reading is off.
func (d drift) fit(series [][]reading, columns int) fitted {
	normal, right := square(columns), make([]float64, columns)
	unexpected := make([]float64, columns)
	for _, all := range series {
		s, y, x := state{drift: d}, track{}, make([]track, columns)
		for i := range all {
			r := &all[i]
			g := s.next(r)
			off := y.see(&g, r.log)
			for c := range x {
				unexpected[c] = x[c].see(&g, r.in(c))
			}
			for c, u := range unexpected {
				right[c] += u * off / g.variance
				for e := 0; e <= c; e++ {
					normal[c][e] += u * unexpected[e] / g.variance
				}
			}
		}
	}
	f := fitted{covariance: inverse(normal), value: make([]float64, columns)}
	for c := range columns {
		for e := range columns {
			f.value[c] += f.covariance[c][e] * right[e]
		}
	}
	f.noise = d.judge(series, &f)
	for _, row := range f.covariance {
		for c := range row {
			row[c] *= f.noise
		}
	}
	return f
}

// judge says by how much each reading is off, in deviations of most of them, and
// returns the variance of the noise.
func (d drift) judge(series [][]reading, f *fitted) float64 {
	sum := 0.0
	var offs []float64
	for _, all := range series {
		s, t := state{drift: d}, track{}
		for i := range all {
			r := &all[i]
			g := s.next(r)
			off := t.see(&g, f.left(r))
			sum += off * off / g.variance
			r.off = off / math.Sqrt(g.variance-1/r.weight+1)
			offs = append(offs, math.Abs(r.off))
		}
	}
	const ofNormal = 0.6745 // deviations that half of them are within
	if usual := stats.Median(offs) / ofNormal; usual > 0 {
		for _, all := range series {
			for i := range all {
				all[i].off /= usual
			}
		}
	}
	return sum / max(1, float64(len(offs)-len(f.value)))
}

// in is a reading's value in a column.
func (r *reading) in(column int) float64 {
	if column == r.group || column == r.offset {
		return 1
	}
	return 0
}

// left is what a regression leaves of a reading.
func (f *fitted) left(r *reading) float64 {
	left := r.log - f.value[r.group]
	if r.offset >= 0 {
		left -= f.value[r.offset]
	}
	return left
}

func square(n int) [][]float64 {
	m := make([][]float64, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// inverse of a symmetric positive definite matrix of which the lower half is given,
// by Cholesky's factors. What is not determined has no variance.
func inverse(m [][]float64) [][]float64 {
	n := len(m)
	factor, out := square(n), square(n)
	for i := range n {
		for j := 0; j <= i; j++ {
			v := m[i][j]
			for k := range j {
				v -= factor[i][k] * factor[j][k]
			}
			switch {
			case i != j && factor[j][j] > 0:
				factor[i][j] = v / factor[j][j]
			case i == j && v > 1e-9*m[i][i]:
				factor[i][i] = math.Sqrt(v)
			}
		}
	}
	for c := range n {
		solve(factor, out[c], c)
	}
	return out
}

// solve makes x the column c of the inverse.
func solve(factor [][]float64, x []float64, c int) {
	x[c] = 1
	for i := c; i < len(x); i++ {
		for k := c; k < i; k++ {
			x[i] -= factor[i][k] * x[k]
		}
		x[i] = ratioOr0(x[i], factor[i][i])
	}
	for i := range slices.Backward(x) {
		for k := i + 1; k < len(x); k++ {
			x[i] -= factor[k][i] * x[k]
		}
		x[i] = ratioOr0(x[i], factor[i][i])
	}
}

func ratioOr0(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
