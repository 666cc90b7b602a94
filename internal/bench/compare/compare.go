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

// Input is one ranking to compare, with its name for readers.
type Input struct {
	Label   string
	Ranking *rank.Ranking
}

// Options of a comparison. The zero value is the default.
type Options struct {
	By rank.By // default Auto: cost where all files have it
	// Normalize lists ciphers, names or globs, whose geometric mean becomes 1 in each file: the
	// result is the speed of the others relative to them.
	Normalize []string
	// Figures lists measurements, names or globs, to compare; empty for all.
	Figures []string
}

// Comparison compares rankings with the first of them. Speeds are ratios: 1.05 means 5 % faster
// than the first file.
type Comparison struct {
	By         rank.By             `json:"ranked_by"`
	KexBy      rank.By             `json:"kex_ranked_by"` // quantity of Kex: Throughput stands for login time
	Normalized []string            `json:"normalized_to,omitempty"`
	Inputs     []Input             `json:"-"`
	Order      []float64           `json:"order_kendall_tau,omitempty"` // of each file after the first: Kendall's tau between the orders of the common cells; empty for fewer than three
	Overall    []Ratio             `json:"overall,omitempty"`           // of each file after the first: geometric mean over the common cells
	Ciphers    []Group             `json:"ciphers"`
	MACs       []Group             `json:"macs"`
	Cells      []CellRatios        `json:"-"`
	Kex        []Group             `json:"kex"`
	Machines   []MachineEffect     `json:"machines,omitempty"`         // where there are three files or more
	Figures    []MeasurementChange `json:"measurements,omitempty"`     // other than SSH trials
	Defaults   []alg.Suite         `json:"defaults_changed,omitempty"` // of each file: the suite negotiated by default; none where all are equal, or one is unknown
	Lacking    []Lacking           `json:"not_compared,omitempty"`     // algorithms that some files lack
	Warnings   []rank.Warning      `json:"warnings,omitempty"`

	of        sides     // sides whose costs count
	adjusted  []bool    // the effect of other guests is removed from that file
	shiftErrs []float64 // of the normalization, one per file
}

// CellRatios is one cell in all files.
type CellRatios struct {
	Suite     alg.Suite
	Direction record.Direction
	Values    []*stats.Interval // ns per byte, or bytes per second; one per file, normalized if asked for
	Ratios    []Ratio           // of each file after the first
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
	c := &Comparison{By: compareBy(inputs, o.By), Inputs: inputs, of: sidesOf(inputs)}
	c.KexBy = c.kexBy(o.By)
	tables := make([]table, len(inputs))
	for i, in := range inputs {
		tables[i] = tableOf(in.Ranking, c.By, c.of)
		if i > 0 {
			tables[i].guests = Neighbors(inputs[0].Ranking, in.Ranking)
		}
		c.adjusted = append(c.adjusted, tables[i].guests.N > 0)
	}
	c.Warnings = takenOut(tables, inputs)
	var err error
	if c.Normalized, err = normalize(tables, o.Normalize); err != nil {
		return nil, err
	}
	for _, t := range tables {
		c.shiftErrs = append(c.shiftErrs, t.shiftErr)
	}
	c.cells(tables)
	c.orders(tables)
	c.groups(tables)
	c.exchanges(tables)
	c.figures(o.Figures)
	if len(c.Cells) == 0 && len(c.Kex) == 0 && len(c.Figures) == 0 {
		return nil, nothingCommon(inputs)
	}
	if len(inputs) > 2 {
		c.machines()
	}
	c.Defaults, c.Lacking = defaults(inputs), lacking(inputs)
	c.Warnings = append(c.Warnings, differences(inputs)...)
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

// cells compares cell by cell, those that all files have.
func (c *Comparison) cells(tables []table) {
	var lines [][]Ratio
	for _, key := range tables[0].order {
		row := CellRatios{Suite: tables[0].names[key], Direction: key.Direction}
		first := tables[0].entries[key]
		for k, t := range tables {
			e, ok := t.entries[key]
			if !ok {
				break
			}
			row.Values = append(row.Values, c.value(e.best))
			if k > 0 {
				row.Ratios = append(row.Ratios, Ratio{Speed: t.over(e, first)})
			}
		}
		if len(row.Values) == len(tables) {
			c.Cells, lines = append(c.Cells, row), append(lines, row.Ratios)
		}
	}
	for k := range c.Inputs[1:] {
		complete(lines, k, c.level(k+1), c.lineLevel(k+1))
	}
	judge(lines)
}

// value returns a cell in its unit: ns per byte, bytes per second, or the speed relative to the
// reference cells.
func (c *Comparison) value(speed stats.Estimate) *stats.Interval {
	if c.By == rank.Cost {
		speed = speed.Inverse()
	}
	q := speed.Interval()
	return &q
}

// lineLevel is the standard error of a single line in the ratios of file k to the first.
func (c *Comparison) lineLevel(k int) float64 {
	return math.Hypot(c.Inputs[0].Ranking.LineLevel(c.By), c.Inputs[k].Ranking.LineLevel(c.By))
}

// level is the standard error that the ratios of file k to the first have in common. Normalizing
// removes it, and adds that of the reference.
func (c *Comparison) level(k int) float64 {
	if len(c.Normalized) > 0 {
		return math.Hypot(c.shiftErrs[0], c.shiftErrs[k])
	}
	first, other := c.Inputs[0].Ranking, c.Inputs[k].Ranking
	return math.Hypot(first.Level(c.By, c.adjusted[k]), other.Level(c.By, c.adjusted[k]))
}

// ClientAlone reports whether costs are those of the client, because the server's are not known
// everywhere.
func (c *Comparison) ClientAlone() bool { return c.of == clientAlone }
