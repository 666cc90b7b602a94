package rank

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Input is one ranking to compare, under the name that readers know it by.
type Input struct {
	Label   string
	Ranking *Ranking
}

// CompareOptions of Compare. The zero value is the default.
type CompareOptions struct {
	By By // default Auto: cost where all files have it
	// Normalise lists ciphers, names or globs, whose geometric mean becomes 1 in
	// each file: what remains is how the others do relative to them.
	Normalise []string
	// Figures lists measurements, names or globs, to compare; empty for all.
	Figures []string
}

// Comparison relates rankings to the first of them. Speeds are ratios: 1.05
// means 5 % faster than the first file.
type Comparison struct {
	By         By
	KexBy      By // what Kex compares: Throughput stands for login time
	Normalised []string
	Inputs     []Input
	Order      []float64 // of each file after the first: Kendall's tau between the orders of the common cells; empty for fewer than three
	Overall    []Ratio   // of each file after the first: geometric mean over the common cells
	Ciphers    []Group
	MACs       []Group
	Cells      []CellRatios
	Kex        []Group
	Machines   []Machine // where there are three files or more
	Figures    []Figure  // of the measurements that are no SSH trials
	Warnings   []Warning

	of        sides     // whose costs
	shiftErrs []float64 // of the normalisation, one per file
}

// Ratio is a speed relative to the first file. Its interval holds the doubt
// about the level of both runs: how fast the machine was at all.
type Ratio struct {
	Speed   Quantity  // N: cells, or connections, that it rests on; 0: unknown
	Rest    *Quantity // the same relative to all other lines, which is free of that doubt; nil where there are none
	P       float64   // adjusted by Holm for all ratios of the same table
	Verdict Verdict
	ByRest  bool // it is Rest that the verdict rests on
}

// Verdict is what can be said of a ratio.
type Verdict string

// The verdicts. Unclear means that the interval holds 1 but is too wide to
// exclude a difference that matters.
const (
	Faster  Verdict = "faster"
	Slower  Verdict = "slower"
	Same    Verdict = "same"
	Unclear Verdict = "unclear"
)

// Group is a cipher, a MAC or a key exchange in all files.
type Group struct {
	Name   string
	Ratios []Ratio // of each file after the first
}

// CellRatios is one cell in all files.
type CellRatios struct {
	Suite     alg.Suite
	Direction record.Direction
	Values    []*Quantity // ns per byte, or bytes per second; one per file, normalised if asked for
	Ratios    []Ratio     // of each file after the first
}

// Machine is the two-way model log(cost) = machine + cell: how fast a machine
// is overall, and which cells deviate most from that.
type Machine struct {
	Label     string
	Speed     float64 // relative to the first
	Residual  float64 // root mean square of the cells' deviations, in percent
	Deviating []Deviation
}

// Deviation is a cell that is faster or slower on one machine than the speeds
// of machine and cell alone explain: a missing instruction, another library.
type Deviation struct {
	Suite     alg.Suite
	Direction record.Direction
	Factor    float64 // above 1: faster than expected
}

// ErrNothingCommon says that two files share no cell and no key exchange.
var ErrNothingCommon = errors.New("the files have no cell in common: they were measured with different ciphers, MACs or directions")

const (
	indifferent = 0.02 // differences below 2 % do not matter (indifference zone)
	deviating   = 5    // cells that are listed per machine
)

// Compare relates all rankings to the first.
func Compare(inputs []Input, o CompareOptions) (*Comparison, error) {
	if len(inputs) < 2 {
		return nil, errors.New("compare needs at least two files")
	}
	c := &Comparison{By: compareBy(inputs, o.By), Inputs: inputs, of: sidesOf(inputs)}
	c.KexBy = c.kexBy(o.By)
	tables := make([]table, len(inputs))
	for i, in := range inputs {
		tables[i] = tableOf(in, c.By, c.of)
	}
	var err error
	if c.Normalised, err = normalise(tables, o.Normalise); err != nil {
		return nil, err
	}
	for _, t := range tables {
		c.shiftErrs = append(c.shiftErrs, t.shiftErr)
	}
	c.cells(tables)
	c.orders(tables)
	c.groups(tables)
	c.exchanges()
	c.figures(o.Figures)
	if len(c.Cells) == 0 && len(c.Kex) == 0 && len(c.Figures) == 0 {
		return nil, ErrNothingCommon
	}
	if len(inputs) > 2 {
		c.machines()
	}
	c.Warnings = differences(inputs)
	return c, nil
}

// compareBy resolves Auto: the cost is what is least disturbed.
func compareBy(inputs []Input, by By) By {
	for _, in := range inputs {
		if in.Ranking.Noise.Cost == 0 {
			return Throughput
		}
	}
	if by == Throughput {
		return Throughput
	}
	return Cost
}

// cells compares cell by cell, those that all files have.
func (c *Comparison) cells(tables []table) {
	for _, key := range tables[0].order {
		row := CellRatios{Suite: tables[0].names[key], Direction: key.Direction}
		for _, t := range tables {
			e, ok := t.entries[key]
			if !ok {
				break
			}
			row.Values = append(row.Values, c.value(e, t.shift))
			if len(row.Values) > 1 {
				first := tables[0].entries[key]
				log := e.log - t.shift - first.log + tables[0].shift
				row.Ratios = append(row.Ratios, ratio(log, math.Hypot(e.err, first.err), min(e.n, first.n)))
			}
		}
		if len(row.Values) == len(tables) {
			c.Cells = append(c.Cells, row)
		}
	}
	var all []*Ratio
	for k := range c.Inputs[1:] {
		var column []*Ratio
		for i := range c.Cells {
			column = append(column, &c.Cells[i].Ratios[k])
		}
		complete(column, c.level(k+1), c.lineLevel(k+1))
		all = append(all, column...)
	}
	judge(all)
}

// minOrder is how many cells it takes to speak of their order.
const minOrder = 3

// orders says how far the files rank the common cells alike: each as it was
// ranked by itself, ties broken as they were printed.
func (c *Comparison) orders(tables []table) {
	if len(c.Cells) < minOrder {
		return
	}
	for _, t := range tables[1:] {
		concordance, pairs := 0.0, 0.0
		for _, direction := range []record.Direction{record.Upload, record.Download, ""} {
			var xs, ys []float64
			for _, cell := range c.Cells {
				if key := record.CellOf(cell.Suite, direction); cell.Direction == direction {
					xs, ys = append(xs, float64(tables[0].entries[key].rank)), append(ys, float64(t.entries[key].rank))
				}
			}
			weight := float64(len(xs)*(len(xs)-1)) / 2
			concordance += weight * stats.KendallTau(xs, ys)
			pairs += weight
		}
		c.Order = append(c.Order, concordance/pairs)
	}
}

// value is a cell in its unit: ns per byte, bytes per second, or the speed
// relative to the reference cells.
func (c *Comparison) value(e entry, shift float64) *Quantity {
	sign := 1.0
	if c.By == Cost {
		sign = -1
	}
	log, arm := sign*(e.log-shift), normal95*e.err
	q := Quantity{Value: log, Lo: log - arm, Hi: log + arm, N: e.n}.Exp()
	return &q
}

// groups compares ciphers, MACs and everything by the cells' own connections,
// whose errors are independent between cells but for the level of each run.
func (c *Comparison) groups(tables []table) {
	axis := func(name func(alg.Suite) string) []Group {
		var names []string
		for _, cell := range c.Cells {
			if n := name(cell.Suite); n != "" && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
		slices.Sort(names)
		var out []Group
		for _, n := range names {
			g := Group{Name: n}
			for k := 1; k < len(tables); k++ {
				mean, err, cells := c.pooled(tables, k, func(s alg.Suite) bool { return name(s) == n })
				r := ratio(mean, err, cells)
				if rest, restErr, others := c.pooled(tables, k, func(s alg.Suite) bool { return name(s) != n }); others > 0 && c.level(k) > 0 {
					r = r.against(rest, math.Hypot(restErr, c.lineLevel(k)))
				}
				g.Ratios = append(g.Ratios, r.withLevel(c.level(k)))
			}
			out = append(out, g)
		}
		judgeGroups(out)
		return out
	}
	if len(c.Cells) == 0 {
		return
	}
	c.Ciphers = axis(func(s alg.Suite) string { return s.Cipher })
	c.MACs = axis(func(s alg.Suite) string { return s.MAC })
	c.Overall = axis(func(alg.Suite) string { return "all" })[0].Ratios
}

func judgeGroups(groups []Group) {
	var all []*Ratio
	for i := range groups {
		for k := range groups[i].Ratios {
			all = append(all, &groups[i].Ratios[k])
		}
	}
	judge(all)
}

// pooled is the logarithm of the geometric mean ratio of file k over the cells
// that match, and its standard error without that of the level.
func (c *Comparison) pooled(tables []table, k int, match func(alg.Suite) bool) (mean, err float64, cells int) {
	var logs []float64
	variance, predicted := 0.0, 0.0
	for _, cell := range c.Cells {
		if !match(cell.Suite) {
			continue
		}
		key := record.CellOf(cell.Suite, cell.Direction)
		a, b := tables[0].entries[key], tables[k].entries[key]
		if a.measured && b.measured {
			logs = append(logs, b.alone-tables[k].shift-a.alone+tables[0].shift)
			variance += a.aloneErr*a.aloneErr + b.aloneErr*b.aloneErr
		} else {
			logs = append(logs, b.log-tables[k].shift-a.log+tables[0].shift)
			predicted += (a.err*a.err + b.err*b.err) / 4 // predictions share half of their errors
		}
	}
	if len(logs) == 0 {
		return 0, 0, 0
	}
	n := float64(len(logs))
	err = math.Sqrt(variance+n*predicted) / n
	if n >= 6 { // cells may differ by more than their noise: let them say so
		err = math.Max(err, math.Sqrt(stats.Variance(logs)/n))
	}
	return stats.Mean(logs), err, len(logs)
}

// What the level of a run may be off by, as standard errors of its logarithm.
// Nine runs of a minute on an idle virtual machine, within an hour, were 2 % apart
// in cost and throughput and 4 % in logins, which nothing within a run can tell.
// Where a loop kept a core busy all the time, both sides cost 10 % less, because they
// woke each other up less often; two such runs differed by a factor of 2.2 in
// throughput, and of 1.5 in login times.
const (
	runLevel   = 0.02
	loginLevel = 0.04
	lineLevel  = 0.005 // of a cipher or a MAC, beyond what all have in common
	cellLevel  = 0.012 // of a cell that no other cells support: one placement in memory and on cores
	busyCost   = 0.08
	busyTime   = 0.35
	// From line to line that differs: aes-cbc cost 8 % less relative to aes-ctr, and
	// took 30 % less time.
	busyLineCost = 0.05
	busyLineTime = 0.15
)

// level is the standard error that all cells of a run share.
func (r *Ranking) level(by By) float64 {
	own := r.levelWall
	if by == Cost {
		own = r.levelCost
	}
	return math.Hypot(math.Hypot(own, runLevel), r.Harness.busy()*pick(by, busyCost, busyTime))
}

// loginLevel is the same for logins.
func (r *Ranking) loginLevel(by By) float64 {
	return math.Hypot(loginLevel, r.Harness.busy()*pick(by, busyCost, busyTime))
}

func pick(by By, cost, time float64) float64 {
	if by == Cost {
		return cost
	}
	return time
}

// lineLevel is what a run may be off by in one line more than in another, most
// of all a disturbed one: a cipher that keeps one side waiting gains from being disturbed.
func (r *Ranking) lineLevel(by By) float64 {
	return math.Hypot(lineLevel, r.Harness.busy()*pick(by, busyLineCost, busyLineTime))
}

func (c *Comparison) lineLevel(k int) float64 {
	return math.Hypot(c.Inputs[0].Ranking.lineLevel(c.By), c.Inputs[k].Ranking.lineLevel(c.By))
}

// level is the standard error that the ratios of file k to the first have in
// common. Normalising takes it out, and brings in that of the reference.
func (c *Comparison) level(k int) float64 {
	if len(c.Normalised) > 0 {
		return math.Hypot(c.shiftErrs[0], c.shiftErrs[k])
	}
	return math.Hypot(c.Inputs[0].Ranking.level(c.By), c.Inputs[k].Ranking.level(c.By))
}

// kexBy resolves what logins are compared by: their time, unless it was
// too noisy to rank by in one of the files.
func (c *Comparison) kexBy(by By) By {
	noisy := false
	for _, in := range c.Inputs {
		noisy = noisy || in.Ranking.KexBy == Cost
		for _, k := range in.Ranking.Kex {
			if c.of.cost(k.Client, k.Server) == nil {
				return Throughput
			}
		}
	}
	if by == Cost || noisy && by != Throughput {
		return Cost
	}
	return Throughput
}

// exchanges compares the logins of the key exchanges that all files have.
func (c *Comparison) exchanges() {
	find := func(r *Ranking, name string) (q *Quantity, err float64) {
		for _, k := range r.Kex {
			if alg.Canonical(alg.Kex, k.Name) != alg.Canonical(alg.Kex, name) {
				continue
			}
			if c.KexBy == Cost {
				return c.of.cost(k.Client, k.Server), k.costErr
			}
			return k.Login, k.loginErr
		}
		return nil, 0
	}
	first := c.Inputs[0].Ranking
	for _, k := range first.Kex {
		g := Group{Name: k.Name}
		own, ownErr := find(first, k.Name)
		for _, in := range c.Inputs[1:] {
			if other, err := find(in.Ranking, k.Name); other != nil && own != nil {
				g.Ratios = append(g.Ratios, ratio(math.Log(own.Value/other.Value), math.Hypot(ownErr, err), min(own.N, other.N)))
			}
		}
		if len(g.Ratios) == len(c.Inputs)-1 {
			c.Kex = append(c.Kex, g)
		}
	}
	for k, in := range c.Inputs[1:] {
		var column []*Ratio
		for i := range c.Kex {
			column = append(column, &c.Kex[i].Ratios[k])
		}
		level := math.Hypot(first.loginLevel(c.KexBy), in.Ranking.loginLevel(c.KexBy))
		complete(column, level, math.Hypot(first.lineLevel(c.KexBy), in.Ranking.lineLevel(c.KexBy)))
	}
	judgeGroups(c.Kex)
}

// machines fits log(speed) = machine + cell to the common cells. With every
// cell in every file the least-squares solution is that of the means.
func (c *Comparison) machines() {
	if len(c.Cells) == 0 {
		return
	}
	files := len(c.Inputs)
	sign := 1.0
	if c.By == Cost {
		sign = -1
	}
	logs := make([][]float64, len(c.Cells))
	machine, cell := make([]float64, files), make([]float64, len(c.Cells))
	for i, row := range c.Cells {
		logs[i] = make([]float64, files)
		for k, v := range row.Values {
			logs[i][k] = sign * math.Log(v.Value)
			machine[k] += logs[i][k] / float64(len(c.Cells))
		}
		cell[i] = stats.Mean(logs[i])
	}
	grand := stats.Mean(machine)
	for k, in := range c.Inputs {
		m := Machine{Label: in.Label, Speed: math.Exp(machine[k] - machine[0])}
		var residuals []float64
		for i, row := range c.Cells {
			residual := logs[i][k] - machine[k] - cell[i] + grand
			residuals = append(residuals, residual)
			m.Deviating = append(m.Deviating, Deviation{row.Suite, row.Direction, math.Exp(residual)})
		}
		m.Residual = 100 * stats.RMS(residuals)
		slices.SortStableFunc(m.Deviating, func(a, b Deviation) int {
			return cmp.Compare(math.Abs(math.Log(b.Factor)), math.Abs(math.Log(a.Factor)))
		})
		m.Deviating = m.Deviating[:min(deviating, len(m.Deviating))]
		c.Machines = append(c.Machines, m)
	}
}
