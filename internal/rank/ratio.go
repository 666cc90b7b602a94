package rank

import (
	"fmt"
	"math"
	"strings"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/stats"
)

// entry is one cell of one file, as the logarithm of its speed.
type entry struct {
	log, err float64 // best estimate
	alone    float64 // of its own connections
	aloneErr float64
	measured bool
	n        int
}

type cellKey struct {
	suite     alg.Suite
	direction bench.Direction
}

type table struct {
	entries map[cellKey]entry
	names   map[cellKey]alg.Suite
	order   []cellKey
	shift   float64 // of the normalisation
}

// tableOf reads the speeds of one file, normalised where asked for.
func tableOf(in Input, by By, normalise []string) (table, error) {
	t := table{entries: map[cellKey]entry{}, names: map[cellKey]alg.Suite{}}
	for _, c := range in.Ranking.Bulk {
		best, alone, sign := c.Throughput, c.Alone.Throughput, 1.0
		if by == Cost {
			best, alone, sign = c.totalQuantity(), c.Alone.Total, -1
		}
		if best == nil || best.Value <= 0 {
			continue
		}
		key := cellKey{canonical(c.Suite), c.Direction}
		e := entry{log: sign * math.Log(best.Value), err: errorOf(best), n: best.N}
		if alone != nil && alone.Value > 0 {
			e.alone, e.aloneErr, e.measured = sign*math.Log(alone.Value), errorOf(alone), true
		}
		t.entries[key], t.names[key] = e, c.Suite
		t.order = append(t.order, key)
	}
	if len(normalise) == 0 {
		return t, nil
	}
	var logs []float64
	for _, key := range t.order {
		if alg.Match(normalise, key.suite.Cipher) || alg.Match(normalise, t.names[key].Cipher) {
			logs = append(logs, t.entries[key].log)
		}
	}
	if len(logs) == 0 {
		return t, fmt.Errorf("%s has no cell of %s to normalise to", in.Label, strings.Join(normalise, ", "))
	}
	t.shift = stats.Mean(logs)
	return t, nil
}

// totalQuantity is the cost of both sides with an interval that takes their
// errors for independent.
func (c Cell) totalQuantity() *Quantity {
	if c.Client == nil {
		return nil
	}
	q := *c.Client
	if c.Server != nil {
		arm := math.Hypot(c.Client.HalfWidth()*c.Client.Value, c.Server.HalfWidth()*c.Server.Value)
		total := c.Total()
		q = Quantity{Value: total, Lo: math.Max(total-arm, total/10), Hi: total + arm, N: c.Client.N}
	}
	return &q
}

func canonical(s alg.Suite) alg.Suite {
	return alg.Suite{Cipher: alg.Canonical(alg.Cipher, s.Cipher), MAC: alg.Canonical(alg.MAC, s.MAC)}
}

// errorOf is the standard error of the logarithm that an interval implies.
func errorOf(q *Quantity) float64 {
	if q == nil || q.Lo <= 0 || q.Hi <= q.Lo {
		return 0
	}
	return math.Log(q.Hi/q.Lo) / (2 * normal95)
}

// ratio is a speed ratio from its logarithm and standard error; p is not
// adjusted yet.
func ratio(log, err float64, n int) Ratio {
	arm := normal95 * err
	r := Ratio{Speed: Quantity{Value: log, Lo: log - arm, Hi: log + arm, N: n}.Exp(), P: 1}
	if err > 0 {
		r.P = math.Erfc(math.Abs(log) / err / math.Sqrt2)
	}
	return r
}

// judge adjusts the p values of one table and gives the verdicts.
func judge(ratios []*Ratio) {
	ps := make([]float64, len(ratios))
	for i, r := range ratios {
		ps[i] = r.P
	}
	for i, p := range stats.Holm(ps) {
		r := ratios[i]
		r.P = p
		switch {
		case p < 1-stats.Confidence && r.Speed.Value > 1:
			r.Verdict = Faster
		case p < 1-stats.Confidence:
			r.Verdict = Slower
		case r.Speed.Lo > 1-2*indifferent && r.Speed.Hi < 1+2*indifferent:
			r.Verdict = Same
		default:
			r.Verdict = Unclear
		}
	}
}
