package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

const howMethodsChanged = "Ratios of medians to the first file, with 95 % intervals that include run-to-run variation (doc/method.md). Faster and slower hold for all rows together (Holm's correction); equal: within " + stats.MarginWords + "."

// OfMethodChanges returns the report of transfer methods in several files.
func OfMethodChanges(c *compare.MethodComparison) *Document {
	d := &Document{Title: "Transfer methods, compared", Method: []string{howMethodsChanged}, Tables: []Table{methodChangeTable(c)}, Charts: []Chart{methodChangeChart(c)}}
	for i, name := range c.Files {
		d.Environment = append(d.Environment, Fact{letter(i), clean(name)})
	}
	d.Lead = append(changedMethods(c), text.NonEmpty(leastText(c.Shows(false)))...)
	alone := clientsAlone(c)
	for _, line := range append(alone, onlyMethods(c)...) {
		d.Doubts = append(d.Doubts, Doubt{Text: line})
	}
	d.Brief = Clean([]Table{
		{Lines: d.Lead}, {Lines: factLines(d.Environment)}, d.Tables[0].untitled(), {Lines: alone}, {Title: "Not compared:", Lines: onlyMethods(c)},
		{Lines: []string{inBrackets}},
	})
	return d
}

// clientsAlone names the methods whose CPU time is the client's alone.
func clientsAlone(c *compare.MethodComparison) []string {
	var names []string
	for _, ch := range c.Changes {
		if ch.ClientAlone {
			names = append(names, changeLabel(c, ch.Method))
		}
	}
	return text.NonEmpty(ClientAlone(names, len(c.Changes)))
}

// ClientAlone says which of lines lines have the CPU time of the client alone; "" for none.
func ClientAlone(names []string, lines int) string {
	const says = "CPU time is the client's alone, as the server's is not known in all files"
	switch len(names) {
	case 0:
		return ""
	case lines:
		return says + "."
	}
	return says + ": " + strings.Join(names, ", ") + "."
}

// changedMethods names for each file the methods that became faster and slower than in the first.
func changedMethods(c *compare.MethodComparison) (out []string) {
	over := ""
	if path := pathText(commonPath(c)); path != "" {
		over = " over" + path
	}
	for k := range c.Files[1:] {
		count := map[stats.Verdict]int{}
		for _, ch := range c.Changes {
			count[ch.Speed[k].Verdict]++
		}
		of := ", with all " + unit.Count(len(c.Changes), "method")
		if len(c.Changes) == 1 {
			of = ""
		}
		if len(count) == 1 {
			out = append(out, beside(letter(k+1), letter(0), c.Changes[0].Speed[k].Verdict)+of+over+".")
			continue
		}
		var words []string
		for _, v := range []stats.Verdict{stats.Better, stats.Worse, stats.Equal, stats.NotEnough} {
			if n := count[v]; n > 0 {
				words = append(words, fmt.Sprintf("%d %s", n, Faster(v)))
			}
		}
		out = append(out, fmt.Sprintf("%s against A, of %s%s: %s.", letter(k+1), unit.Count(len(c.Changes), "method"), over, strings.Join(words, ", ")))
	}
	return out
}

// commonPath returns the path of all methods, if they have one.
func commonPath(c *compare.MethodComparison) record.Path {
	for _, ch := range c.Changes {
		if ch.Path != c.Changes[0].Path {
			return record.Path{}
		}
	}
	return c.Changes[0].Path
}

// changeLabel names a method, without the path that all share.
func changeLabel(c *compare.MethodComparison, m record.Method) string {
	if m.Path == commonPath(c) {
		m.Path = record.Path{}
	}
	return MethodLabel(m)
}

// onlyMethods lists the methods without figures in some files, which are not compared.
func onlyMethods(c *compare.MethodComparison) (lines []string) {
	for _, only := range c.Only {
		lines = append(lines, "only in "+letters(only.Files)+": "+MethodAndCipher(only.Method))
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

// Least says which differences a comparison can show; least is the smallest one, as a share. It
// returns "" for none.
func Least(least float64) string {
	if least <= 0 {
		return ""
	}
	return "these files can show differences of " + unit.Difference(least) + " or more"
}

// leastText returns Least as a sentence.
func leastText(least float64) string {
	if least <= 0 {
		return ""
	}
	return title(Least(least)) + "."
}

// says reports whether a ratio is known well enough to be shown.
func says(r compare.Ratio) bool { return r.Speed.Known() && r.Speed.Interval().Says() }

// shows words the verdict of a ratio.
func shows(r compare.Ratio, above, below string) string {
	if !r.Speed.Known() {
		return ""
	}
	return r.Verdict.Called(above, below)
}

// shownRatio returns the cell of a ratio if it is known well enough.
func shownRatio(r compare.Ratio) Cell {
	if !says(r) {
		return Cell{}
	}
	return Cell{Quantity: r.Speed.OrNil()}
}

// methodChangeTable has a row for each method.
func methodChangeTable(c *compare.MethodComparison) Table {
	t := Table{Name: "methods", Title: "Transfer methods, against " + clean(c.Files[0]), Note: howMethodsChanged, Columns: []Column{
		{Key: "method", Head: "method", Fit: text.Cut}, {Key: "cipher", Head: "cipher", Minor: true},
	}}
	for k, name := range c.Files[1:] {
		of := letter(k + 1)
		speed := Column{Key: "speed_ratio_" + of, Head: of + "/A speed " + clean(name), Terse: of + "/A|speed"}
		cost := Column{Key: "cpu_ratio_" + of, Head: of + "/A CPU time", Terse: of + "/A|CPU time", Bare: true}
		t.Columns = slices.Concat(t.Columns, RatioColumns(speed, "verdict_"+of, of+" is"), RatioColumns(cost, "cpu_verdict_"+of, of+" takes"))
	}
	for _, ch := range c.Changes {
		row := Row{Suite: safe(ch.Suite), Cells: []Cell{{Text: changeLabel(c, ch.Method)}, {Text: clean(ch.Suite.Cipher)}}}
		for k := range ch.Speed {
			row.Cells = append(row.Cells, shownRatio(ch.Speed[k]), Cell{Text: shows(ch.Speed[k], "faster", "slower")},
				shownRatio(ch.Cost[k]), Cell{Text: shows(ch.Cost[k], "more", "less")})
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// methodChangeChart shows the ratios of speeds that are known well enough.
func methodChangeChart(c *compare.MethodComparison) Chart {
	var files []string
	for _, name := range c.Files {
		files = append(files, clean(name))
	}
	out := againstFirst(files, Dots, "methods", "Speed against "+files[0], "Right of 1: faster.")
	for _, ch := range c.Changes {
		item := Item{Label: changeLabel(c, ch.Method), Suite: safe(ch.Suite)}
		for _, r := range ch.Speed {
			p := Point{}
			if says(r) {
				p = PointOf(r.Speed.OrNil(), 1)
			}
			item.Points = append(item.Points, p)
		}
		out.Items = append(out.Items, item)
	}
	return out
}
