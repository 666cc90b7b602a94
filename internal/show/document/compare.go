package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
)

// OfComparison builds the report of a comparison. Files are named by letters, from A, and by their
// labels.
func OfComparison(c *compare.Comparison, o Options) *Document {
	d := &Document{Title: "SSH speed compared", Method: comparisonMethod(c), Doubts: doubts(c.Warnings, nil)}
	for i, in := range c.Inputs {
		e := in.Ranking.Environment
		d.Environment = append(d.Environment, Fact{fileName(c, i), clean(strings.Join(text.NonEmpty(e.CPU, release(e.Client), library(e.Crypto), e.Kernel), ", "))})
		d.Quality = append(d.Quality, noiseFact(c, i))
	}
	d.Lead = comparisonLead(c)
	d.Tables = comparisonTables(c)
	d.Charts = comparisonCharts(c)
	d.Brief = briefComparison(c, d, o.All)
	d.Algorithms = Algorithms(comparedSuites(c))
	return d
}

// letter returns the letter of a file.
func letter(i int) string { return stats.Letters(i) }

func fileName(c *compare.Comparison, i int) string {
	return clean(letter(i) + " " + c.Inputs[i].Label)
}

func fileNames(c *compare.Comparison) (out []string) {
	for i := range c.Inputs {
		out = append(out, fileName(c, i))
	}
	return out
}

func noiseFact(c *compare.Comparison, i int) Fact {
	return Fact{"noise floor of " + fileName(c, i), cmp.Or(noiseFloor(c.Inputs[i].Ranking.Noise), unknownWord)}
}

// comparisonLead returns the result, a sentence each.
func comparisonLead(c *compare.Comparison) []string {
	var out []string
	for k, r := range c.Overall {
		out = append(out, overallText(c, k+1, r))
	}
	out = append(append(out, text.NonEmpty(leastText(c.Shows()))...), append(changedDefaults(c), lackingLines(c)...)...)
	if len(c.Normalized) > 0 {
		out = append(out, "Normalized to the geometric mean of "+clean(strings.Join(c.Normalized, ", "))+" in each file.")
	}
	return out
}

// overallText describes how a file differs from the first as a whole.
func overallText(c *compare.Comparison, k int, r compare.Ratio) string {
	return fmt.Sprintf("%s: %s over %s.", beside(fileName(c, k), fileName(c, 0), r.Verdict), r.Speed.Interval().Times(), unit.Count(len(c.Cells), "combination"))
}

// beside compares b with a in words.
func beside(b, a string, v stats.Verdict) string {
	switch v {
	case stats.Equal:
		return fmt.Sprintf("%s is as fast as %s, within %s", b, a, stats.MarginWords)
	case stats.NotEnough:
		return fmt.Sprintf("Not enough data to say whether %s is faster or slower than %s", b, a)
	}
	return fmt.Sprintf("%s is %s than %s", b, Faster(v), a)
}

// orderLines says how similar the orders of the cells are in two files.
func orderLines(c *compare.Comparison) (out []string) {
	for k, tau := range c.Order {
		out = append(out, fmt.Sprintf("%s orders the cells as %s does with a Kendall's tau of %.3f (1: alike, 0: unrelated).", fileName(c, k+1), fileName(c, 0), tau))
	}
	return out
}

// briefComparison shows the result, and as many of the changed lines as fit the screen; with all,
// every table.
func briefComparison(c *compare.Comparison, d *Document, all bool) []Table {
	out := []Table{{Lines: slices.Clone(d.Lead)}, {Lines: factLines(d.Environment)}}
	if !all { // lists of names, and of programs, have a line each
		for i, line := range out[0].Lines {
			if strings.HasPrefix(line, notCompared) {
				out[0].Lines[i] = text.Clip(line, text.Columns)
			}
		}
		for i, line := range out[1].Lines {
			out[1].Lines[i] = text.Clip(line, text.Columns)
		}
	}
	if all {
		out = append(append(out, d.Tables...), Table{Lines: append(orderLines(c), comparisonMethod(c)...)})
		return Clean(append(out, Table{Lines: doubtLines(d.Doubts)}))
	}
	if len(c.Cells)+len(c.Kex) == 0 { // only measurements besides SSH
		return Clean(Screenful(append(out, d.Tables...), doubtLines(d.Doubts), 0, "sshpace compare --all", nil))
	}
	hidden := len(d.Doubts)
	for _, t := range d.Tables {
		if t.Name == "overall" || t.Name == "cells" {
			continue
		}
		changed := slices.DeleteFunc(slices.Clone(t.Rows), func(r Row) bool { return r.Same })
		hidden += len(t.Rows) - len(changed)
		if t.Rows = changed; len(changed) > 0 {
			t.Spare = max(0, len(changed)-len(c.Inputs))
			out = append(out, t)
		}
	}
	last := Table{Lines: []string{inBrackets}}
	out, over := Fit(out, len(last.Lines)+2)
	if hidden += over; hidden > 0 {
		last.Lines = append(last.Lines, fmt.Sprintf("%d more lines and remarks: sshpace compare --all", hidden))
	}
	return Clean(append(out, last))
}

// Faster words a verdict on a speed.
func Faster(v stats.Verdict) string {
	return v.Called("faster", "slower")
}

// changedDefaults names the suite that each file's programs negotiate by default, where they
// differ.
func changedDefaults(c *compare.Comparison) (lines []string) {
	for i, s := range c.Defaults {
		lines = append(lines, "Default changed: "+letter(i)+" negotiates "+clean(strings.Join(text.NonEmpty(Short(s.Cipher), Short(s.MAC), s.Kex), ", ")))
	}
	return lines
}

// notCompared begins the sentences of lackingLines.
const notCompared = "Not compared, "

// lackingLines names the algorithms that not all files have, by the files that have them, and then
// those that some did not measure.
func lackingLines(c *compare.Comparison) (lines []string) {
	var heads []string
	names := map[string][]string{}
	for _, l := range c.Lacking {
		head := "not measured in " + letters(l.Unmeasured())
		if only := l.Only(); len(only) > 0 {
			head = "only in " + letters(only)
		}
		heads = appendNew(heads, head)
		names[head] = append(names[head], Short(l.Name))
	}
	slices.SortStableFunc(heads, func(a, b string) int { return -cmp.Compare(a, b) })
	for _, head := range heads {
		lines = append(lines, notCompared+head+": "+strings.Join(names[head], ", "))
	}
	return lines
}

func verdict(r compare.Ratio) string {
	word := Faster(r.Verdict)
	if r.ByRest {
		return word + " than the other rows"
	}
	return word
}

func comparisonMethod(c *compare.Comparison) []string {
	out := []string{fmt.Sprintf(`Speeds are ratios to the first file, by %s: 1.05 means 5 %% faster than it. `+
		`Intervals hold with 95 %% confidence, one by one; a verdict of faster or slower holds for all rows of its table together (Holm's correction). `+
		`Equal: the interval lies within %s.`, bulkBasis(c), stats.MarginWords)}
	if len(c.Machines) > 0 {
		out = append(out, `With three files or more, log(cost) = machine + cell is fitted; deviations from it show a missing instruction or another library.`)
	}
	return out
}

func comparedSuites(c *compare.Comparison) []alg.Suite {
	var out []alg.Suite
	for _, cell := range c.Cells {
		out = append(out, cell.Suite)
	}
	for _, k := range c.Kex {
		out = append(out, alg.Suite{Kex: k.Name})
	}
	return out
}

// ValueUnit returns the unit of CellRatios.Values, as a key and for people.
func ValueUnit(c *compare.Comparison) (key, of string, scale float64) {
	switch {
	case len(c.Normalized) > 0:
		return "relative", "relative", 1
	case c.By == rank.Throughput:
		return "bytes_per_s", "MB/s", 1e6
	}
	return "ns_per_byte", "s/GB", 1
}

// RatioColumns returns the columns of a ratio, headed as r, and of its verdict, headed shows.
func RatioColumns(r Column, key, shows string) []Column {
	r.Unit, r.Scale, r.Kind = ratio, 1, Quantity
	return []Column{r, {Key: key, Head: shows, Terse: " "}}
}

// ratioColumns returns the speed ratio and the verdict of each file but the first.
func ratioColumns(c *compare.Comparison) (out []Column) {
	for k := 1; k < len(c.Inputs); k++ {
		of := letter(k)
		r := Column{Key: "speed_ratio_" + of, Head: of + "/A " + clean(c.Inputs[k].Label), Terse: of + "/A"}
		out = append(out, RatioColumns(r, "verdict_"+of, of+" is")...)
	}
	return out
}

func ratioCells(ratios []compare.Ratio) []Cell {
	var out []Cell
	for _, r := range ratios {
		out = append(out, Cell{Quantity: r.Speed.OrNil()}, Cell{Text: verdict(r)})
	}
	return out
}

func comparisonTables(c *compare.Comparison) []Table {
	var out []Table
	add := func(name, title string, of alg.Kind, groups []compare.Group) {
		if len(groups) > 0 {
			out = append(out, groupTable(c, name, title, of, groups))
		}
	}
	if len(c.Overall) > 0 {
		add("overall", "Overall: geometric mean over the common cells", "", []compare.Group{{Name: "all cells", Ratios: c.Overall}})
	}
	add("ciphers", "Ciphers", alg.Cipher, c.Ciphers)
	add("macs", "MACs", alg.MAC, c.MACs)
	add("kex", "Logins by key exchange: "+kexBasis(c), alg.Kex, c.Kex)
	if len(c.Cells) > 0 {
		out = append(out, cellTable(c))
	}
	if len(c.Machines) > 0 {
		out = append(out, machineTable(c))
	}
	if len(c.Figures) > 0 {
		out = append(out, figureTable(c))
	}
	return out
}

func groupTable(c *compare.Comparison, name, title string, of alg.Kind, groups []compare.Group) Table {
	first := Column{Key: "name", Head: "name", Kind: Name, Of: of, Fit: text.Cut}
	if of == "" {
		first.Kind = Text
	}
	t := Table{Name: name, Title: title, Columns: append([]Column{first}, ratioColumns(c)...)}
	for _, g := range groups {
		t.Rows = append(t.Rows, Row{Suite: safe(suiteOf(of, g.Name)), Cells: append([]Cell{{Text: clean(g.Name)}}, ratioCells(g.Ratios)...), Same: !changed(g)})
	}
	return t
}

// changed reports whether any file has a verdict of change.
func changed(g compare.Group) bool {
	return slices.ContainsFunc(g.Ratios, func(r compare.Ratio) bool { return r.Differs() })
}

func suiteOf(kind alg.Kind, name string) alg.Suite {
	switch kind {
	case alg.Cipher:
		return alg.Suite{Cipher: name}
	case alg.MAC:
		return alg.Suite{MAC: name}
	case alg.Kex:
		return alg.Suite{Kex: name}
	}
	return alg.Suite{}
}

func cellTable(c *compare.Comparison) Table {
	key, of, scale := ValueUnit(c)
	t := Table{Name: "cells", Title: "Cells", Columns: []Column{
		{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher, Fit: text.Cut}, {Key: "mac", Head: "MAC", Kind: Name, Of: alg.MAC, Fit: text.Cut}, {Key: "direction", Head: "direction", Minor: true},
	}}
	for i, in := range c.Inputs {
		t.Columns = append(t.Columns, Column{Key: key + "_" + letter(i), Head: letter(i) + " " + clean(in.Label), Terse: letter(i) + "|" + of, Unit: of, Scale: scale, Kind: Quantity, Bare: true, Minor: len(c.Inputs) > 2})
	}
	t.Columns = append(t.Columns, ratioColumns(c)...)
	for _, cell := range c.Cells {
		row := Row{Suite: safe(cell.Suite), Cells: []Cell{{Text: clean(cell.Suite.Cipher)}, {Text: clean(cell.Suite.MAC)}, {Text: clean(string(cell.Direction))}}}
		for _, v := range cell.Values {
			row.Cells = append(row.Cells, Cell{Quantity: v})
		}
		row.Cells = append(row.Cells, ratioCells(cell.Ratios)...)
		t.Rows = append(t.Rows, row)
	}
	return t
}

func machineTable(c *compare.Comparison) Table {
	t := Table{Name: "machines", Title: "Machines", Note: "The largest deviations from speed of the machine × speed of the cell.", Columns: []Column{
		{Key: "label", Head: "machine"},
		{Key: "speed_ratio", Head: "speed against A", Terse: "against A", Unit: ratio, Scale: 1, Kind: Quantity},
		{Key: "residual_pct", Head: "cells deviate by", Terse: "deviates|by %", Unit: "%", Scale: 1, Kind: Quantity},
		{Key: "deviating", Head: "most deviating cells, times the expected speed", Terse: "most deviating, times expected", Fit: text.Cut},
	}}
	for i, m := range c.Machines {
		var deviating []string
		for _, d := range m.Deviating {
			deviating = append(deviating, label(d.Suite)+" "+unit.Digits(d.Factor))
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{
			{Text: clean(letter(i) + " " + m.Label)}, {Quantity: stats.Exactly(m.Speed)}, {Quantity: stats.Exactly(m.Residual)}, {Text: strings.Join(deviating, "; ")},
		}})
	}
	return t
}

func comparisonCharts(c *compare.Comparison) []Chart {
	var out []Chart
	if len(c.Ciphers) > 0 {
		out = append(out, sideBySide(c), ratioChart(c, "ciphers", "Ciphers: speed against "+fileName(c, 0), alg.Cipher, c.Ciphers))
	}
	if len(c.MACs) > 0 {
		out = append(out, ratioChart(c, "macs", "MACs: speed against "+fileName(c, 0), alg.MAC, c.MACs))
	}
	if len(c.Cells) > 1 {
		out = append(out, ratioHeat(c))
	}
	if len(c.Kex) > 0 {
		out = append(out, ratioChart(c, "kex", "Logins: speed by "+kexBasis(c)+" against "+fileName(c, 0), alg.Kex, c.Kex))
	}
	return out
}

// sideBySide shows the geometric mean of each cipher on every machine.
func sideBySide(c *compare.Comparison) Chart {
	_, of, scale := ValueUnit(c)
	out := Chart{Name: "machines", Table: "ciphers", Title: "Machines side by side: mean over the MACs of each cipher", Shape: Dots, Log: true, Unit: of}
	switch {
	case len(c.Normalized) > 0:
		out.Reference, out.Rising = 1, c.By == rank.Throughput
		out.Note = "1 is the mean of " + clean(strings.Join(c.Normalized, ", ")) + " on that machine; " + betterWhen(out.Rising)
	case c.By == rank.Throughput:
		out.Rising, out.Note = true, "Throughput: "+betterWhen(true)
	default:
		out.Note = bulkBasis(c) + " per byte: " + betterWhen(false)
	}
	out.Series = fileNames(c)
	for _, g := range c.Ciphers {
		item := Item{Label: Short(g.Name), Suite: safe(alg.Suite{Cipher: g.Name})}
		item.Mark = mark("", item.Suite.Status())
		for i := range c.Inputs {
			item.Points = append(item.Points, meanOf(c, g.Name, i, scale))
		}
		out.Items = append(out.Items, item)
	}
	slices.SortStableFunc(out.Items, func(a, b Item) int {
		order := cmp.Compare(a.Points[0].Value, b.Points[0].Value)
		if out.Rising {
			return -order
		}
		return order
	})
	return out
}

func betterWhen(rising bool) string {
	if rising {
		return "more is better."
	}
	return "less is better."
}

// meanOf returns the geometric mean of a cipher's cells in file i.
func meanOf(c *compare.Comparison, cipher string, i int, scale float64) Point {
	sum, n := 0.0, 0
	for _, cell := range c.Cells {
		if cell.Suite.Cipher == cipher && cell.Values[i] != nil && cell.Values[i].Value > 0 {
			sum += math.Log(cell.Values[i].Value)
			n++
		}
	}
	if n == 0 {
		return Point{}
	}
	v := math.Exp(sum/float64(n)) / scale
	return Point{Value: v, Lo: v, Hi: v, Known: true}
}

// againstFirst returns a chart of speeds relative to the first file.
func againstFirst(files []string, shape Shape, name, title, note string) Chart {
	return Chart{Name: name, Table: name, Title: title, Shape: shape, Unit: ratio, Reference: 1, Rising: true, Note: note, Series: files[1:]}
}

// ratioPoints returns the points of ratios.
func ratioPoints(ratios []compare.Ratio) (out []Point) {
	for _, r := range ratios {
		out = append(out, PointOf(r.Speed.OrNil(), 1))
	}
	return out
}

func ratioChart(c *compare.Comparison, name, title string, of alg.Kind, groups []compare.Group) Chart {
	out := againstFirst(fileNames(c), Dots, name, title, "Right of 1: faster than "+fileName(c, 0)+".")
	out.First = 1
	for _, g := range groups {
		item := Item{Label: Short(g.Name), Suite: safe(suiteOf(of, g.Name)), Points: ratioPoints(g.Ratios)}
		item.Mark = mark("", item.Suite.Status())
		out.Items = append(out.Items, item)
	}
	return out
}

// ratioHeat shows every cell of every file against the first.
func ratioHeat(c *compare.Comparison) Chart {
	out := againstFirst(fileNames(c), Heat, "cells", "Every cell: speed against "+fileName(c, 0), "Above 1: faster than the first file.")
	for _, cell := range c.Cells {
		name := label(cell.Suite)
		if len(c.Inputs[0].Ranking.Directions()) > 1 {
			name += ", " + clean(string(cell.Direction))
		}
		out.Items = append(out.Items, Item{Label: name, Suite: safe(cell.Suite), Points: ratioPoints(cell.Ratios)})
	}
	return out
}
