// Package document is a report before it has a format: the tables, the pictures and the words of a
// ranking or a comparison. Every writer renders the same Document, so that numbers and order cannot
// differ between formats. It decides nothing and writes nothing.
//
// All text in a Document is free of control characters (package termsafe), but not escaped for any
// format: that is the writer's part.
package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// Document is a whole report.
type Document struct {
	Title       string
	Answer      Answer   // of a ranking: the algorithms to use, and the gain
	Lead        []string // of a comparison: the result, a sentence each
	Footnote    string   // where and when, in a line
	PolicyName  string   // of a ranking: that the answer is of, and a page opens with; "": any
	Tables      []Table  // the main ones first; tables of one Name have the same columns
	Charts      []Chart
	Brief       []Table // the form for a terminal
	Columns     int     // of that terminal; 0: any width
	Environment []Fact
	Quality     []Fact // how far the numbers can be trusted
	Method      []string
	Doubts      []Doubt
	Algorithms  []Algorithm // every name in the document, with its standing
}

// Doubt is a warning to read before the numbers are trusted. Hint may be "".
type Doubt struct{ Text, Hint string }

// String returns the text and the hint.
func (d Doubt) String() string { return strings.Join(text.NonEmpty(d.Text, d.Hint), "; ") }

// Algorithm is the standing of one name, with the reason.
type Algorithm struct {
	Kind        alg.Kind
	Name        string
	Status      alg.Status // "" for an unknown name
	Reason      string
	PostQuantum bool
}

// Kind selects the field of a column's cells that is set.
type Kind uint8

// The kinds of columns.
const (
	Text     Kind = iota // Cell.Text
	Name                 // Cell.Text, the name of an algorithm; Column.Of is its kind
	Count                // Cell.Text, a whole number
	Quantity             // Cell.Quantity
)

// Column describes the cells below it.
type Column struct {
	Key   string // stable; of a Quantity with its base unit, such as "login_ns"
	Head  string // for people, without the unit
	Unit  string // of a Quantity as people read it, such as "ms"
	Scale float64
	Kind  Kind
	Of    alg.Kind // Name: which list of algorithms
	Minor bool     // left out where there is little room

	// On a terminal:
	Terse string   // the head, where Head and Unit are too long; | makes two lines
	Bare  bool     // a Quantity is shown without its interval
	Fit   text.Fit // treatment where there is no room
	Usual []string // value that is not worth a word
}

// Numeric reports whether the cells are numbers.
func (c Column) Numeric() bool { return c.Kind == Quantity || c.Kind == Count }

// Row is one line. Suite is compared by filters for names or a policy.
type Row struct {
	Suite alg.Suite
	Cells []Cell
	Same  bool // of a comparison: it shows no change
}

// Cell is one value. A nil Quantity is unknown.
type Cell struct {
	Text     string
	Quantity *stats.Interval // in base units: divide by Column.Scale to show it
}

// Shape is the way to draw a chart.
type Shape string

// The shapes. In all of them Items are the rows from top to bottom and Series the columns of a
// matrix of points.
const (
	Dots  Shape = "dots"  // a dot with its interval for each item and series
	Bars  Shape = "bars"  // the same as bars from zero
	Heat  Shape = "heat"  // a colored cell for each item and series
	Stack Shape = "stack" // the series of an item add up to its bar
	Curve Shape = "curve" // one item a series: a line of its points over X, which Across names
)

// Chart is one picture. Its figures are in Unit.
type Chart struct {
	Name      string   `json:"name"` // stable, for --only: "ranking", "heat", "cost", "kex", ...
	Table     string   `json:"-"`    // name of the table with the same numbers; "" if there is none
	Part      string   `json:"-"`    // of that table's name, which
	Title     string   `json:"title"`
	Note      string   `json:"-"` // how to read it
	Shape     Shape    `json:"shape"`
	Unit      string   `json:"unit"`
	Series    []string `json:"series"`
	First     int      `json:"first"`             // color of the first series: a file has its color in all charts
	Columns   []string `json:"columns,omitempty"` // Heat of ciphers and MACs: full names of the MACs; otherwise nil
	Items     []Item   `json:"items"`
	Reference float64  `json:"reference,omitempty"` // a line to draw, such as 1 for ratios; 0: none
	Rising    bool     `json:"rising"`              // more is better
	Log       bool     `json:"log,omitempty"`       // Dots, Curve: on a logarithmic scale
	Across    string   `json:"across,omitempty"`    // Curve: meaning of X of its items, with its unit
}

// Item is one row of a chart.
type Item struct {
	Label string `json:"label"`
	Mark  string `json:"mark,omitempty"` // group letter, "post-quantum", "weak": in words, never by color alone
	alg.Suite
	Color  int       `json:"color,omitempty"` // Bars of one series: color of this one among Series, ColorNow or ColorQuantum; 0: the color of the others
	Bound  bool      `json:"bound,omitempty"` // Curve: an upper bound, not a measurement
	X      []float64 `json:"x,omitempty"`     // Curve: where its points are
	Points []Point   `json:"points"`
}

// Aside returns the mark in parentheses, to be printed after the label; "" without a mark.
func (i Item) Aside() string {
	if i.Mark == "" {
		return ""
	}
	return "  (" + i.Mark + ")"
}

// Point is a figure with its interval, in the chart's unit.
type Point struct {
	Value, Lo, Hi float64
	Known         bool
	Predicted     bool
}

// MarshalJSON writes [value, lo, hi, predicted] as far as they exist, or null, for the scripts of a
// page.
func (p Point) MarshalJSON() ([]byte, error) {
	switch {
	case !p.Known:
		return []byte("null"), nil
	case p.Predicted:
		return json.Marshal([]float64{p.Value, p.Lo, p.Hi, 1})
	case p.Lo == p.Hi:
		return json.Marshal([]float64{p.Value})
	}
	return json.Marshal([]float64{p.Value, p.Lo, p.Hi})
}

// PointOf scales a quantity to the unit of a chart.
func PointOf(q *stats.Interval, scale float64) Point {
	if q == nil {
		return Point{}
	}
	own := q.Mapped(func(v float64) float64 { return v / scale })
	return Point{Value: own.Value, Lo: own.Lo, Hi: own.Hi, Known: true}
}

// Table finds the tables with a name.
func (d *Document) Table(name string) []Table {
	var out []Table
	for _, t := range d.Tables {
		if t.Name == name {
			out = append(out, t)
		}
	}
	return out
}

// TableNames lists the names for Table.
func (d *Document) TableNames() []string {
	var out []string
	for _, t := range d.Tables {
		out = appendNew(out, t.Name)
	}
	return out
}

// ErrNoSuch says that a document has no table or chart with a name.
var ErrNoSuch = errors.New("there is no")

// NoSuch returns ErrNoSuch for a kind of part, such as a table, and lists the names that exist.
func NoSuch(kind, name string, have []string) error {
	return fmt.Errorf("%w %s %q here; there are: %s", ErrNoSuch, kind, name, strings.Join(have, ", "))
}

// Head returns the document with at most rows rows in each table and chart; 0 or less: all. Heat
// maps and curves stay whole.
func (d *Document) Head(rows int) *Document {
	if rows <= 0 {
		return d
	}
	out := *d
	out.Tables = slices.Clone(d.Tables)
	for i := range out.Tables {
		t := &out.Tables[i]
		if more := len(t.Rows) - rows; more > 0 {
			t.Rows = t.Rows[:rows]
			t.Note = strings.TrimSpace(fmt.Sprintf("%s First %d of %d.", t.Note, rows, rows+more))
		}
	}
	out.Charts = slices.Clone(d.Charts)
	for i := range out.Charts {
		c := &out.Charts[i]
		if more := len(c.Items) - rows; more > 0 && c.Shape != Heat && c.Shape != Curve {
			c.Items = c.Items[:rows]
			c.Note = strings.TrimSpace(fmt.Sprintf("First %d of %d. %s", rows, rows+more, c.Note))
		}
	}
	return &out
}

// Caption explains how to read the chart.
func (c Chart) Caption() string {
	predicted := func(item Item) bool {
		return slices.ContainsFunc(item.Points, func(p Point) bool { return p.Predicted })
	}
	if !slices.ContainsFunc(c.Items, predicted) {
		return c.Note
	}
	return c.Note + map[Shape]string{Dots: " Hollow: predicted.", Heat: " ~: predicted."}[c.Shape]
}

// Measure returns the unit in words.
func (c Chart) Measure() string {
	switch c.Unit {
	case "s/GB":
		return "seconds of CPU time per GB"
	}
	return c.Unit
}

// ChartNames lists the names of the charts.
func (d *Document) ChartNames() []string {
	var out []string
	for _, c := range d.Charts {
		out = appendNew(out, c.Name)
	}
	return out
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// clean makes text of a file or a host safe to show.
func clean(s string) string { return termsafe.Line(s) }

// safe returns a suite whose names are safe to show. Filters compare these names.
func safe(s alg.Suite) alg.Suite {
	return alg.Suite{Cipher: clean(s.Cipher), MAC: clean(s.MAC), Kex: clean(s.Kex), HostKey: clean(s.HostKey)}
}

// Shown prints a cell for people: "681 (640-720)", "-" for an unknown value.
func (c Column) Shown(cell Cell) string {
	value, bounds := c.Parts(cell)
	return strings.TrimSpace(value + " " + bounds)
}

// Parts returns a value and its interval.
func (c Column) Parts(cell Cell) (value, bounds string) {
	q := cell.Quantity
	switch {
	case c.Kind != Quantity:
		return cell.Text, ""
	case q == nil:
		return unknown, ""
	case c.Unit == ratio:
		return q.Ratio()(q.Value) + "x", q.Bounds(q.Ratio())
	}
	figure := func(v float64) string { return unit.Digits(v / c.Scale) }
	return figure(q.Value), q.Bounds(figure)
}

const (
	ratio   = "ratio" // the unit of a value without one
	unknown = "-"

	unknownWord = "unknown"
)

// Heading returns the head with its unit: "throughput, MB/s".
func (c Column) Heading() string {
	if c.Unit == "" {
		return c.Head
	}
	return c.Head + ", " + c.Unit
}

// Known returns a chart without the series that are unknown, such as the CPU time of a host's
// server.
func (c Chart) Known() Chart {
	for i := len(c.Series) - 1; i > 0; i-- {
		if !slices.ContainsFunc(c.Items, func(item Item) bool { return item.Points[i].Known }) {
			c.Series = slices.Delete(slices.Clone(c.Series), i, i+1)
			for k, item := range c.Items {
				c.Items[k].Points = slices.Delete(slices.Clone(item.Points), i, i+1)
			}
		}
	}
	return c
}
