package rank

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// entry is one cell of one file, as the logarithm of its speed.
type entry struct {
	log, err float64 // best estimate
	alone    float64 // of its own connections
	aloneErr float64
	measured bool
	n        int
	rank     int // in its own file
}

type table struct {
	entries map[record.Cell]entry
	names   map[record.Cell]alg.Suite
	order   []record.Cell
	// of the normalisation
	shift, shiftErr float64
}

// tableOf reads the speeds of one file.
func tableOf(in Input, by By, of sides) table {
	t := table{entries: map[record.Cell]entry{}, names: map[record.Cell]alg.Suite{}}
	for _, c := range in.Ranking.Bulk {
		best, alone := c.Again.Throughput, c.Alone.Throughput
		if by == Cost {
			best, alone = of.total(c.Again), of.total(c.Alone)
		}
		if !best.Known() {
			continue
		}
		key := record.CellOf(c.Suite, c.Direction)
		e := entry{log: best.Log, err: best.Err, n: best.N, rank: c.Rank, alone: alone.Log, aloneErr: alone.Err, measured: alone.Known()}
		t.entries[key], t.names[key] = e, c.Suite
		t.order = append(t.order, key)
	}
	return t
}

// normalise sets the geometric mean of the cells of some ciphers, those that all
// files have, to 1 in every file. It returns the names of these ciphers.
func normalise(tables []table, patterns []string) (used []string, err error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	logs, variance := make([]float64, len(tables)), make([]float64, len(tables))
	cells := 0.0
	for _, key := range tables[0].order {
		name := tables[0].names[key].Cipher
		common := !slices.ContainsFunc(tables, func(t table) bool { _, has := t.entries[key]; return !has })
		if !common || !alg.Match(patterns, name) && !alg.Match(patterns, key.Suite.Cipher) {
			continue
		}
		if !slices.Contains(used, name) {
			used = append(used, name)
		}
		for i, t := range tables {
			e := t.entries[key]
			logs[i] += e.log
			variance[i] += e.err * e.err
		}
		cells++
	}
	if cells == 0 {
		return nil, fmt.Errorf("%w: no cell of %s is in all files", ErrNoReference, strings.Join(patterns, ", "))
	}
	for i := range tables {
		tables[i].shift, tables[i].shiftErr = logs[i]/cells, math.Sqrt(variance[i])/cells
	}
	return used, nil
}

// CommonCiphers lists the ciphers of cells that all files have.
func CommonCiphers(inputs []Input) []string {
	count := map[string]int{}
	for _, in := range inputs {
		seen := map[string]bool{}
		for _, c := range in.Ranking.Bulk {
			if !seen[c.Suite.Cipher] {
				seen[c.Suite.Cipher] = true
				count[c.Suite.Cipher]++
			}
		}
	}
	var out []string
	for _, name := range sortedKeys(count) {
		if count[name] == len(inputs) {
			out = append(out, name)
		}
	}
	return out
}

// ErrNoReference says that files cannot be normalised to the ciphers asked for.
var ErrNoReference = errors.New("nothing to normalise to")

// sides are whose cost files are compared by: both, or the client's alone where
// the server's is unknown in one of them.
type sides bool

const (
	bothSides   sides = false
	clientAlone sides = true
)

// sidesOf resolves what the costs of all files have in common.
func sidesOf(inputs []Input) sides {
	for _, in := range inputs {
		for _, c := range in.Ranking.Bulk {
			if c.Client != nil && c.Server == nil {
				return clientAlone
			}
		}
		for _, k := range in.Ranking.Kex {
			if k.Client != nil && k.Server == nil {
				return clientAlone
			}
		}
	}
	return bothSides
}

// cost is that of both sides, with an interval that takes their errors for
// independent, or of the client alone. Nil: unknown.
func (s sides) cost(client, server *Quantity) *Quantity {
	if s == clientAlone {
		return client
	}
	if client == nil || server == nil {
		return nil
	}
	arm := math.Hypot(client.HalfWidth()*client.Value, server.HalfWidth()*server.Value)
	total := client.Value + server.Value
	return &Quantity{Value: total, Lo: math.Max(total-arm, total/10), Hi: total + arm, N: client.N}
}

// total is the inverse of the cost, a speed.
func (s sides) total(f Figures) stats.Estimate {
	if s == clientAlone {
		return f.Client.Inverse()
	}
	return f.Total.Inverse()
}

// errorOf is the standard error of the logarithm that an interval implies.
func errorOf(q *Quantity) float64 {
	if q == nil || q.Lo <= 0 || q.Hi <= q.Lo {
		return 0
	}
	return math.Log(q.Hi/q.Lo) / (2 * normal95)
}

// ratio is a speed ratio from its logarithm and standard error.
func ratio(log, err float64, n int) Ratio {
	arm := normal95 * err
	return Ratio{Speed: Quantity{Value: log, Lo: log - arm, Hi: log + arm, N: n}.Exp(), P: 1}
}

// against relates the ratio to that of everything else, given as a logarithm.
func (r Ratio) against(log, err float64) Ratio {
	rest := ratio(math.Log(r.Speed.Value)-log, math.Hypot(errorOf(&r.Speed), err), r.Speed.N).Speed
	r.Rest = &rest
	return r
}

// withLevel adds the doubt about the level of both runs.
func (r Ratio) withLevel(level float64) Ratio {
	r.Speed = ratio(math.Log(r.Speed.Value), math.Hypot(errorOf(&r.Speed), level), r.Speed.N).Speed
	return r
}

// complete finishes ratios of lines with errors of their own: each against the
// mean of the others, with the doubt about single lines, and by itself with that
// about the level.
func complete(ratios []*Ratio, level, line float64) {
	sum, variance := 0.0, 0.0
	for _, r := range ratios {
		sum += math.Log(r.Speed.Value)
		variance += errorOf(&r.Speed) * errorOf(&r.Speed)
	}
	others := float64(len(ratios) - 1)
	for _, r := range ratios {
		own, err := math.Log(r.Speed.Value), errorOf(&r.Speed)
		if others > 0 && level > 0 {
			*r = r.against((sum-own)/others, math.Hypot(math.Sqrt(math.Max(0, variance-err*err))/others, line))
		}
	}
	for _, r := range ratios {
		*r = r.withLevel(level)
	}
}

// test gives the p value of a ratio, not adjusted yet. What differs from the
// rest, in the same direction, differs whatever the level was; of two chances the
// better one counts twice (Bonferroni).
func (r *Ratio) test() {
	r.P = pValue(&r.Speed)
	if r.Rest == nil {
		return
	}
	rest := 1.0
	if (r.Rest.Value > 1) == (r.Speed.Value > 1) {
		rest = pValue(r.Rest)
	}
	r.ByRest = rest < r.P
	r.P = math.Min(1, 2*math.Min(r.P, rest))
}

// pValue of a ratio that is 1 in truth, two-sided.
func pValue(q *Quantity) float64 {
	err := errorOf(q)
	if err == 0 {
		return 1
	}
	return math.Erfc(math.Abs(math.Log(q.Value)) / err / math.Sqrt2)
}

// judge tests the ratios of one table, adjusts their p values and gives the
// verdicts.
func judge(ratios []*Ratio) {
	ps := make([]float64, len(ratios))
	for i, r := range ratios {
		r.test()
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
		r.ByRest = r.ByRest && (r.Verdict == Faster || r.Verdict == Slower)
	}
}
