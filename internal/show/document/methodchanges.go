package document

import (
	"fmt"

	"sshpace/internal/base/unit"
	"sshpace/internal/verdict/methods"
)

const howMethodsChanged = "Ratios of medians to the first file, with 95 % intervals that hold what whole runs differ by (doc/method.md); a verdict holds for all rows together (Holm's correction). No difference shown does not say that there is none."

// OfMethodChanges is the report of transfer methods in several files.
func OfMethodChanges(c *methods.Comparison) *Document {
	d := &Document{Title: "Ways to move bytes, compared", Method: []string{howMethodsChanged}, Tables: []Table{methodChangeTable(c)}, Charts: []Chart{methodChangeChart(c)}}
	head := Block{Lines: []string{"Ways to move bytes, against A:"}}
	for i, name := range c.Files {
		d.Environment = append(d.Environment, Fact{letter(i), text(name)})
		head.Lines = append(head.Lines, text(letter(i)+"  "+name))
	}
	d.Brief = []Block{head, briefMethodChanges(c)}
	if c.Lacking > 0 {
		line := fmt.Sprintf("%s of A without a figure in another file.", unit.Count(c.Lacking, "way"))
		d.Doubts = append(d.Doubts, Doubt{Text: line})
		d.Brief = append(d.Brief, Block{Lines: []string{line}})
	}
	d.Brief = cleanBlocks(append(d.Brief, Block{Lines: []string{howMethodsChanged}}))
	return d
}

// briefMethodChanges is the table for a terminal: a row for each file but the first.
func briefMethodChanges(c *methods.Comparison) Block {
	b := Block{
		Fields: []Field{{Width: 30, Cut: true}, {Width: 3}, {Width: 18}, {Width: 6}, {Width: 18}},
		Heads:  [][]string{{"way", "", "speed", "", "CPU time"}},
	}
	for _, ch := range c.Changes {
		name := MethodLabel(ch.Method)
		for k := range ch.Speed {
			b.Rows = append(b.Rows, []string{name, letter(k + 1), shownRatio(ch.Speed[k]), faster(ch.Speed[k], "-"), shownRatio(ch.Cost[k]) + " " + costlier(ch.Cost[k], "-")})
			name = ""
		}
	}
	return b
}

// anything is how many times its lower end the upper end of an interval may be, or the
// ratio says nothing.
const anything = 30

// shownRatio is a ratio with its interval; "" where it is not known.
func shownRatio(r methods.Ratio) string {
	switch i := r.Interval(); {
	case !r.Known():
		return ""
	case !says(r):
		return "cannot tell"
	default:
		return fmt.Sprintf("%.2f [%.2f-%.2f]", i.Value, i.Lo, i.Hi)
	}
}

// says reports whether a ratio is known well enough to be shown.
func says(r methods.Ratio) bool {
	i := r.Interval()
	return r.Known() && i.Hi <= anything*i.Lo
}

// faster and costlier say what a ratio shows; none is what is said of no difference.
func faster(r methods.Ratio, none string) string   { return shows(r, "faster", "slower", none) }
func costlier(r methods.Ratio, none string) string { return shows(r, "more", "less", none) }

func shows(r methods.Ratio, above, below, none string) string {
	switch {
	case !r.Known():
		return ""
	case !r.Shown():
		return none
	case r.Log > 0:
		return above
	}
	return below
}

// unseen is what a table says of a ratio that may be 1.
const unseen = "no difference shown"

// methodChangeTable is the table for all other formats.
func methodChangeTable(c *methods.Comparison) Table {
	t := Table{Name: "ways", Title: "Ways to move bytes, against " + text(c.Files[0]), Note: howMethodsChanged, Columns: []Column{
		{Key: "way", Head: "way"}, {Key: "cipher", Head: "cipher"},
	}}
	for k, name := range c.Files[1:] {
		of := letter(k + 1)
		t.Columns = append(t.Columns,
			Column{Key: "speed_ratio_" + of, Head: of + "/A " + text(name), Unit: "speed", Scale: 1, Kind: Quantity}, Column{Key: "verdict_" + of, Head: of + " is"},
			Column{Key: "cpu_ratio_" + of, Head: of + "/A", Unit: "CPU time", Scale: 1, Kind: Quantity}, Column{Key: "cpu_verdict_" + of, Head: of + " takes"})
	}
	for _, ch := range c.Changes {
		row := Row{Suite: safe(ch.Suite), Cells: []Cell{{Text: MethodLabel(ch.Method)}, {Text: text(ch.Suite.Cipher)}}}
		for k := range ch.Speed {
			row.Cells = append(row.Cells, Cell{Quantity: interval(ch.Speed[k].Estimate)}, Cell{Text: faster(ch.Speed[k], unseen)},
				Cell{Quantity: interval(ch.Cost[k].Estimate)}, Cell{Text: costlier(ch.Cost[k], unseen)})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// methodChangeChart shows the ratios of speeds that say something.
func methodChangeChart(c *methods.Comparison) Chart {
	out := Chart{
		Name: "ways", Table: "ways", Title: "Speed against " + text(c.Files[0]), Shape: Dots, Unit: "ratio", Reference: 1, Rising: true,
		Note: "Right of 1: faster. An interval that holds 1 shows no difference.",
	}
	for _, name := range c.Files[1:] {
		out.Series = append(out.Series, text(name))
	}
	for _, ch := range c.Changes {
		item := Item{Label: MethodLabel(ch.Method), Suite: safe(ch.Suite)}
		for _, r := range ch.Speed {
			p := Point{}
			if says(r) {
				p = point(interval(r.Estimate), 1)
			}
			item.Points = append(item.Points, p)
		}
		out.Items = append(out.Items, item)
	}
	return out
}
