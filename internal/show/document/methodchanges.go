package document

import (
	"fmt"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/compare"
)

const howMethodsChanged = "Ratios of medians to the first file, with 95 % intervals that include run-to-run variation (doc/method.md). Faster and slower hold for all rows together (Holm's correction); equal: within 5 %."

// OfMethodChanges is the report of transfer methods in several files.
func OfMethodChanges(c *compare.MethodComparison) *Document {
	d := &Document{Title: "Ways to move bytes, compared", Method: []string{howMethodsChanged}, Tables: []Table{methodChangeTable(c)}, Charts: []Chart{methodChangeChart(c)}}
	head := Block{Lines: []string{"Ways to move bytes, against A:"}}
	for i, name := range c.Files {
		d.Environment = append(d.Environment, Fact{letter(i), text(name)})
		head.Lines = append(head.Lines, text(letter(i)+"  "+name))
	}
	d.Brief = []Block{head, briefMethodChanges(c)}
	if len(c.Only) > 0 {
		lines := onlyMethods(c)
		for _, line := range lines {
			d.Doubts = append(d.Doubts, Doubt{Text: line})
		}
		d.Brief = append(d.Brief, Block{Title: "NOT COMPARED", Lines: lines})
	}
	d.Lead = nonEmpty(leastText(c.Shows()))
	d.Brief = cleanBlocks(append(d.Brief, Block{Lines: append(nonEmpty(leastText(c.Shows())), howMethodsChanged, "~: not enough data.")}))
	return d
}

// onlyMethods are those that some files have no figure of, and so are not compared.
func onlyMethods(c *compare.MethodComparison) (lines []string) {
	for _, only := range c.Only {
		name := MethodLabel(only.Method)
		if cipher := Short(only.Suite.Cipher); cipher != "" {
			name += ", " + cipher
		}
		lines = append(lines, "only in "+letters(only.Files)+": "+name)
	}
	return lines
}

// letters names files by their places.
func letters(files []int) string {
	var names []string
	for _, i := range files {
		names = append(names, letter(i))
	}
	return strings.Join(names, ", ")
}

// Least says which differences a comparison can show, by the least of them as a part; ""
// for none.
func Least(least float64) string {
	switch {
	case least <= 0:
		return ""
	case least >= 1:
		return fmt.Sprintf("these files can show only differences by more than a factor of %s", Figure(1+least))
	}
	return fmt.Sprintf("these files can show differences from %s %% on", Percent(100*least))
}

// leastText is the same as a sentence of its own.
func leastText(least float64) string {
	if least <= 0 {
		return ""
	}
	return title(Least(least)) + "."
}

// briefMethodChanges is the table for a terminal: a row for each file but the first.
func briefMethodChanges(c *compare.MethodComparison) Block {
	b := Block{
		Fields: []Field{{Width: 30, Cut: true}, {Width: 3}, {Width: 18}, {Width: 6}, {Width: 18}},
		Heads:  [][]string{{"way", "", "speed", "", "CPU time"}},
	}
	for _, ch := range c.Changes {
		name := MethodLabel(ch.Method)
		for k := range ch.Speed {
			b.Rows = append(b.Rows, []string{name, letter(k + 1), shownRatio(ch.Speed[k]), faster(ch.Speed[k], "~"), shownRatio(ch.Cost[k]) + " " + costlier(ch.Cost[k], "~")})
			name = ""
		}
	}
	return b
}

// anything is how many times its lower end the upper end of an interval may be, or the
// ratio says nothing.
const anything = 30

// shownRatio is a ratio with its interval; "" where it is not known.
func shownRatio(r compare.MethodRatio) string {
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
func says(r compare.MethodRatio) bool {
	i := r.Interval()
	return r.Known() && i.Hi <= anything*i.Lo
}

// faster and costlier say what a ratio shows; unknown is what is said of too little data.
func faster(r compare.MethodRatio, unknown string) string {
	return shows(r, "faster", "slower", unknown)
}
func costlier(r compare.MethodRatio, unknown string) string {
	return shows(r, "more", "less", unknown)
}

func shows(r compare.MethodRatio, above, below, unknown string) string {
	if !r.Known() {
		return ""
	}
	return map[stats.Verdict]string{stats.Better: above, stats.Worse: below, stats.Equal: string(stats.Equal), stats.NotEnough: unknown}[r.Verdict]
}

// methodChangeTable is the table for all other formats.
func methodChangeTable(c *compare.MethodComparison) Table {
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
			row.Cells = append(row.Cells, Cell{Quantity: interval(ch.Speed[k].Estimate)}, Cell{Text: faster(ch.Speed[k], string(stats.NotEnough))},
				Cell{Quantity: interval(ch.Cost[k].Estimate)}, Cell{Text: costlier(ch.Cost[k], string(stats.NotEnough))})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// methodChangeChart shows the ratios of speeds that say something.
func methodChangeChart(c *compare.MethodComparison) Chart {
	out := Chart{
		Name: "ways", Table: "ways", Title: "Speed against " + text(c.Files[0]), Shape: Dots, Unit: "ratio", Reference: 1, Rising: true,
		Note: "Right of 1: faster.",
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
