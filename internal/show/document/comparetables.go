package document

import (
	"cmp"
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

// comparedTables are the tables of lines, in their order, with the columns that describe subjects.
var comparedTables = []struct {
	of          compare.Table
	title, note string
	attributes  []Column
}{
	{of: compare.Overall, title: "Overall: geometric mean over the common cells", attributes: []Column{{Key: "name", Head: "name", Fit: text.Cut}}},
	{of: compare.Ciphers, title: "Ciphers", attributes: []Column{{Key: "name", Head: "name", Kind: Name, Of: alg.Cipher, Fit: text.Cut}}},
	{of: compare.MACs, title: "MACs", attributes: []Column{{Key: "name", Head: "name", Kind: Name, Of: alg.MAC, Fit: text.Cut}}},
	{of: compare.Kex, title: "Logins by key exchange: ", attributes: []Column{{Key: "name", Head: "name", Kind: Name, Of: alg.Kex, Fit: text.Cut}}},
	{of: compare.Cells, title: "Cells", attributes: []Column{
		{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher, Fit: text.Cut}, {Key: "mac", Head: "MAC", Kind: Name, Of: alg.MAC, Fit: text.Cut},
		{Key: "direction", Head: "direction", Minor: true},
	}},
	{of: compare.Figures, title: "Machines besides SSH", note: "In the units of the programs that measured them.", attributes: []Column{
		{Key: "source", Head: "program", Minor: true}, {Key: "name", Head: "what"}, {Key: "unit", Head: "unit"},
	}},
	{of: compare.Methods, title: "Transfer methods, against ", note: howMethodsChanged, attributes: []Column{
		{Key: "method", Head: "method", Fit: text.Cut}, {Key: "cipher", Head: "cipher", Minor: true},
	}},
	{of: compare.Logins, title: "Logins compared", attributes: []Column{
		{Key: "factor", Head: "what differs", Minor: true}, {Key: "level", Head: "login", Terse: " ", Fit: text.Above},
	}},
}

// attribute returns what a column says about the subject of a line.
func attribute(c *compare.Comparison, l compare.Line, key string) string {
	switch key {
	case "cipher":
		return l.Suite.Cipher
	case "mac":
		return l.Suite.MAC
	case "direction":
		return string(l.Direction)
	case "source":
		return l.Source
	case "unit":
		return l.Unit
	case "factor":
		return l.Factor
	}
	return subjectName(c, l.Subject)
}

func comparisonTables(c *compare.Comparison) (out []Table) {
	for _, of := range comparedTables {
		if of.of == compare.Figures && len(c.Machines) > 0 {
			out = append(out, machineTable(c))
		}
		t, lines := Table{Name: string(of.of), Title: of.title, Note: of.note}, c.In(of.of)
		if len(lines) == 0 {
			continue
		}
		switch of.of {
		case compare.Kex:
			t.Title += basis(lines[0])
		case compare.Methods:
			t.Title += clean(c.Inputs[0].Label)
		}
		t.fill(c, of.attributes, bySubject(lines))
		out = append(out, t)
	}
	return out
}

// quantities are the columns of the quantities that tables show.
var quantities = map[compare.Quantity]struct{ key, verdict, head, shows string }{
	compare.Speed: {"speed_ratio_", "verdict_", "speed", " is"}, compare.CPU: {"cpu_ratio_", "cpu_verdict_", "CPU time", " takes"},
}

// bySubject returns the lines of each subject, in the quantities that are shown.
func bySubject(lines []compare.Line) (out [][]compare.Line) {
	for i, l := range lines {
		if quantities[l.Quantity].key == "" {
			continue
		}
		if i == 0 || lines[i-1].Subject != l.Subject {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], l)
	}
	return out
}

// fill adds the columns and a row for each subject: its attributes, its values in all files, and
// its ratios with their verdicts.
func (t *Table) fill(c *compare.Comparison, attributes []Column, subjects [][]compare.Line) {
	first := subjects[0]
	figures := first[0].Table == compare.Figures // which are not judged
	t.Columns = slices.Clone(attributes)
	for i := range first[0].Values {
		t.Columns = append(t.Columns, valueColumn(c, first[0], i))
	}
	shown := len(c.Inputs) - 1
	if figures && shown > 1 {
		shown = 0
	}
	for k := range shown {
		for i, l := range first {
			t.Columns = append(t.Columns, ratioColumns(c, l, k+1, len(first), i > 0)...)
		}
	}
	for _, lines := range subjects {
		row := Row{Suite: safe(lines[0].Suite), Same: !figures}
		for _, a := range attributes {
			row.Cells = append(row.Cells, Cell{Text: clean(attribute(c, lines[0], a.Key))})
		}
		for _, v := range lines[0].Values {
			row.Cells = append(row.Cells, Cell{Quantity: v})
		}
		for k := range shown {
			for _, l := range lines {
				r := l.Ratios[k]
				row.Same = row.Same && !r.Verdict.Differs()
				row.Cells = append(row.Cells, Cell{Quantity: shownRatio(r)})
				if !figures {
					row.Cells = append(row.Cells, Cell{Text: verdict(l, r)})
				}
			}
		}
		t.Rows = append(t.Rows, row)
	}
}

// valueUnit returns the key of a unit for programs, and the unit with its scale for people; "" for
// a unit of the row.
func valueUnit(of string) (key, shown string, scale float64) {
	switch of {
	case "relative":
		return of, "relative", 1
	case "bytes_per_s":
		return of, "MB/s", 1e6
	case "ns_per_byte":
		return of, "s/GB", 1
	}
	return "value", "", 1
}

// valueColumn returns the column of the values in file i.
func valueColumn(c *compare.Comparison, l compare.Line, i int) Column {
	key, of, scale := valueUnit(l.Unit)
	out := Column{Key: key + "_" + letter(i), Head: fileName(c, i), Terse: letter(i), Unit: of, Scale: scale, Kind: Quantity}
	if of != "" {
		out.Terse, out.Bare, out.Minor = out.Terse+"|"+of, true, len(c.Inputs) > 2
	}
	return out
}

// ratioColumns returns the columns of the ratio of a line in file i, and of its verdict. Each
// subject has so many quantities, of which this may be a further one.
func ratioColumns(c *compare.Comparison, l compare.Line, i, many int, further bool) []Column {
	of, q := letter(i), quantities[l.Quantity]
	out := Column{Key: q.key + of, Head: of + "/A", Terse: of + "/A", Unit: ratio, Scale: 1, Kind: Quantity, Bare: further}
	if many > 1 || l.Quantity != compare.Speed {
		out.Head, out.Terse = out.Head+" "+q.head, out.Terse+"|"+q.head
	}
	if !further {
		out.Head += " " + clean(c.Inputs[i].Label)
	}
	if l.Table == compare.Figures {
		return []Column{out}
	}
	return []Column{out, {Key: q.verdict + of, Head: of + q.shows, Terse: " "}}
}

// shownRatio returns a ratio if it is known well enough.
func shownRatio(r compare.Ratio) *stats.Interval {
	if !r.Known() || !r.Interval().Says() {
		return nil
	}
	return r.OrNil()
}

func verdict(l compare.Line, r compare.Ratio) string {
	if r.ByRest {
		return l.Verdict(r) + " than the other rows"
	}
	return l.Verdict(r)
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

// comparisonCharts returns a chart for each table of speeds; cells are in one with all ciphers and
// MACs.
func comparisonCharts(c *compare.Comparison) (out []Chart) {
	for _, of := range []struct {
		table compare.Table
		title string
	}{{compare.Ciphers, "Ciphers: speed"}, {compare.MACs, "MACs: speed"}, {compare.Cells, "Every cell: speed"}, {compare.Kex, "Logins: speed by "}, {compare.Methods, "Speed"}} {
		lines := c.In(of.table)
		if len(lines) == 0 || of.table == compare.Cells && len(lines) == 1 {
			continue
		}
		switch of.table {
		case compare.Ciphers:
			out = append(out, sideBySide(c, lines))
		case compare.Kex:
			of.title += basis(lines[0])
		}
		out = append(out, ratioChart(c, of.title, lines))
	}
	return out
}

// sideBySide shows the geometric mean of each cipher on every machine.
func sideBySide(c *compare.Comparison, ciphers []compare.Line) Chart {
	cells := c.In(compare.Cells)
	_, unit, scale := valueUnit(cells[0].Unit)
	out := Chart{
		Name: "machines", Table: "ciphers", Title: "Machines side by side: mean over the MACs of each cipher", Shape: Dots, Log: true,
		Unit: unit, Rising: ciphers[0].By == rank.Throughput,
	}
	of, better := basis(ciphers[0])+" per byte: ", "less is better."
	if out.Rising {
		of, better = "Throughput: ", "more is better."
	}
	if len(c.Normalized) > 0 {
		of, out.Reference = "1 is the mean of "+clean(strings.Join(c.Normalized, ", "))+" on that machine; ", 1
	}
	out.Note = of + better
	for i := range c.Inputs {
		out.Series = append(out.Series, fileName(c, i))
	}
	for _, l := range ciphers {
		item := comparedItem(c, l)
		for i := range c.Inputs {
			item.Points = append(item.Points, meanOf(cells, l.Name, i, scale))
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

// meanOf returns the geometric mean of a cipher's cells in file i.
func meanOf(cells []compare.Line, cipher string, i int, scale float64) Point {
	sum, n := 0.0, 0
	for _, cell := range cells {
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

// ratioChart returns a chart of speeds relative to the first file.
func ratioChart(c *compare.Comparison, title string, lines []compare.Line) Chart {
	name := string(lines[0].Table)
	out := Chart{
		Name: name, Table: name, Title: title + " against " + fileName(c, 0), Shape: Dots, Unit: ratio, Reference: 1, Rising: true,
		Note: "Right of 1: faster than " + fileName(c, 0) + ".", First: 1,
	}
	if lines[0].Table == compare.Cells {
		out.Shape, out.Note, out.First = Heat, "Above 1: faster than the first file.", 0
	}
	for i := range c.Inputs[1:] {
		out.Series = append(out.Series, fileName(c, i+1))
	}
	for _, l := range lines {
		if l.Quantity != compare.Speed {
			continue
		}
		item := comparedItem(c, l)
		for _, r := range l.Ratios {
			item.Points = append(item.Points, PointOf(shownRatio(r), 1))
		}
		out.Items = append(out.Items, item)
	}
	return out
}

// comparedItem returns the item of a line, without its points.
func comparedItem(c *compare.Comparison, l compare.Line) Item {
	item := Item{Label: Short(subjectName(c, l.Subject)), Suite: safe(l.Suite)}
	switch l.Table {
	case compare.Cells:
		item.Label = label(l.Suite)
		if len(c.Inputs[0].Ranking.Directions()) > 1 {
			item.Label += ", " + clean(string(l.Direction))
		}
	case compare.Ciphers, compare.MACs, compare.Kex:
		item.Mark = mark("", item.Suite.Status())
	}
	return item
}
