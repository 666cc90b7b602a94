// Package compare turns files into rankings and figures of transfer methods, and compares them with
// those of the first file: which is faster, by how much, and whether chance and the state of the
// machines can explain that.
package compare

import (
	"errors"
	"fmt"
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Input is one file to compare, with its name for readers.
type Input struct {
	Label       string             `json:"label"`
	Ranking     *rank.Ranking      `json:"-"` // nil: it holds methods or logins
	Campaign    record.Campaign    `json:"campaign"`
	Environment record.Environment `json:"environment"`
}

// Options of a comparison of rankings. The zero value is the default.
type Options struct {
	By rank.By // default Auto: cost where all files have it
	// Normalize lists ciphers, names or globs, whose geometric mean becomes 1 in each file: the
	// result is the speed of the others relative to them.
	Normalize []string
	// Figures lists measurements, names or globs, to compare; empty for all.
	Figures []string
}

// Comparison compares files with the first of them, line by line.
type Comparison struct {
	Inputs     []Input         `json:"files"`
	Lines      []Line          `json:"lines"`                  // what all files have, but for measurements
	Only       []Only          `json:"not_compared,omitempty"` // what some of them lack
	Normalized []string        `json:"normalized_to,omitempty"`
	Order      []float64       `json:"order_kendall_tau,omitempty"` // of each file after the first: Kendall's tau between the orders of the common cells; empty for fewer than three
	Machines   []MachineEffect `json:"machines,omitempty"`          // where there are three files or more
	Defaults   []alg.Suite     `json:"defaults_changed,omitempty"`  // of each file: the suite negotiated by default; none where all are equal, or one is unknown
	Warnings   []rank.Warning  `json:"warnings,omitempty"`
	Floor      float64         `json:"floor_pct,omitempty"` // the smallest change that any amount of data could show: whole runs differ
	Gate       *Gate           `json:"fail_on,omitempty"`   // that it was judged by; nil for none

	of        sides     // sides whose costs count
	by, kexBy rank.By   // of a login, Throughput stands for its time
	adjusted  []bool    // the effect of other guests is removed from that file
	shiftErrs []float64 // of the normalization, one per file
}

// ErrNothingCommon says that two files share no cell and no key exchange.
var ErrNothingCommon = errors.New("the files have nothing in common")

// nothingCommon returns ErrNothingCommon with the reason and a hint.
func nothingCommon(inputs []Input) error {
	for _, in := range inputs[1:] {
		if first, other := kindOf(inputs[0].Ranking), kindOf(in.Ranking); first != other {
			return fault.WithHint(fmt.Errorf("%w: %s holds %s, %s holds %s", ErrNothingCommon, inputs[0].Label, first, in.Label, other),
				"compare results of one kind, such as two of sshpace bench")
		}
	}
	return fault.WithHint(fmt.Errorf("%w: they were measured with different ciphers, MACs or directions", ErrNothingCommon),
		"measure both with the same --cipher, --mac and --direction")
}

// kindOf names the main content of a result.
func kindOf(r *rank.Ranking) string {
	switch {
	case len(r.Bulk) > 0:
		return "speeds of ciphers"
	case len(r.Kex) > 0:
		return "logins"
	case len(r.Measurements) > 0:
		return "limits of a machine"
	}
	return "nothing that is compared"
}

// Of compares all rankings with the first.
func Of(inputs []Input, o Options) (*Comparison, error) {
	if len(inputs) < 2 {
		return nil, errors.New("compare needs at least two files")
	}
	c := &Comparison{by: compareBy(inputs, o.By), of: sidesOf(inputs)}
	tables := make([]table, len(inputs))
	for i, in := range inputs {
		in.Campaign, in.Environment = in.Ranking.Campaign, in.Ranking.Environment
		c.Inputs = append(c.Inputs, in)
		tables[i] = tableOf(in.Ranking, c.by, c.of)
		if i > 0 {
			tables[i].guests = Neighbors(inputs[0].Ranking, in.Ranking)
		}
		c.adjusted = append(c.adjusted, tables[i].guests.N > 0)
	}
	c.kexBy = c.exchangesBy(o.By)
	c.Warnings = takenOut(tables, inputs)
	var err error
	if c.Normalized, err = normalize(tables, o.Normalize); err != nil {
		return nil, err
	}
	for _, t := range tables {
		c.shiftErrs = append(c.shiftErrs, t.shiftErr)
	}
	cells := c.cells(tables)
	c.orders(tables, cells)
	for _, lines := range [][]Line{
		c.groups(tables, cells, Overall, func(alg.Suite) string { return "all cells" }),
		c.groups(tables, cells, Ciphers, func(s alg.Suite) string { return s.Cipher }),
		c.groups(tables, cells, MACs, func(s alg.Suite) string { return s.MAC }),
		cells, c.exchanges(tables),
	} {
		judge(lines, Speed, 0, len(inputs)-1)
		c.Lines = append(c.Lines, lines...)
	}
	figures, unpaired := c.figures(o.Figures)
	c.Lines = append(c.Lines, figures...)
	if len(c.Lines) == 0 {
		return nil, nothingCommon(inputs)
	}
	if len(inputs) > 2 {
		c.machines(cells)
	}
	for k := range inputs[1:] {
		if len(cells) > 0 {
			c.Floor = max(c.Floor, floor(c.level(k+1)))
		}
	}
	c.Defaults, c.Only = defaults(inputs), lacking(inputs)
	c.Warnings = append(append(c.Warnings, differences(inputs)...), unpaired...)
	return c, nil
}

// compareBy resolves Auto: costs are least disturbed.
func compareBy(inputs []Input, by rank.By) rank.By {
	for _, in := range inputs {
		if in.Ranking.Noise.Cost == 0 {
			return rank.Throughput
		}
	}
	if by == rank.Throughput {
		return rank.Throughput
	}
	return rank.Cost
}

// line returns a line of speeds, by cost or by throughput.
func (c *Comparison) line(t Table, by rank.By, s Subject) Line {
	return Line{Table: t, Subject: s, Quantity: Speed, By: by, ClientAlone: by == rank.Cost && c.of == clientAlone}
}

// cells compares cell by cell, those that all files have.
func (c *Comparison) cells(tables []table) (lines []Line) {
	for _, key := range tables[0].order {
		first := tables[0].entries[key]
		l := c.line(Cells, c.by, Subject{Name: first.suite.String(), Suite: first.suite, Direction: key.Direction})
		l.Unit = c.unit()
		for k, t := range tables {
			e, ok := t.entries[key]
			if !ok {
				break
			}
			l.Values = append(l.Values, c.value(e.best))
			if k > 0 {
				l.Ratios = append(l.Ratios, Ratio{Estimate: t.over(e, first)})
			}
		}
		if len(l.Values) == len(tables) {
			lines = append(lines, l)
		}
	}
	for k := range c.Inputs[1:] {
		complete(lines, k, c.level(k+1), c.lineLevel(k+1))
	}
	return lines
}

// unit names the unit of value.
func (c *Comparison) unit() string {
	switch {
	case len(c.Normalized) > 0:
		return "relative"
	case c.by == rank.Throughput:
		return "bytes_per_s"
	}
	return "ns_per_byte"
}

// value returns a cell in its unit: ns per byte, bytes per second, or the speed relative to the
// reference cells.
func (c *Comparison) value(speed stats.Estimate) *stats.Interval {
	if c.by == rank.Cost {
		speed = speed.Inverse()
	}
	q := speed.Interval()
	return &q
}

// lineLevel is the standard error of a single line in the ratios of file k to the first.
func (c *Comparison) lineLevel(k int) float64 {
	return math.Hypot(c.Inputs[0].Ranking.LineLevel(c.by), c.Inputs[k].Ranking.LineLevel(c.by))
}

// level is the standard error that the ratios of file k to the first have in common. Normalizing
// removes it, and adds that of the reference.
func (c *Comparison) level(k int) float64 {
	if len(c.Normalized) > 0 {
		return math.Hypot(c.shiftErrs[0], c.shiftErrs[k])
	}
	first, other := c.Inputs[0].Ranking, c.Inputs[k].Ranking
	return math.Hypot(first.Level(c.by, c.adjusted[k]), other.Level(c.by, c.adjusted[k]))
}
