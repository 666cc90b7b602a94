package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
)

// briefComparison is a comparison in 80 columns, or more where there are many
// files: how they differ as a whole, and what changed; with all, every line. Speeds
// are relative to the first file.
func briefComparison(c *compare.Comparison, all bool) []Block {
	var inputs []string
	for i, in := range c.Inputs {
		e := in.Ranking.Environment
		inputs = append(inputs, letter(i)+"  "+strings.Join(nonEmpty(in.Label, e.CPU, e.Client), ", "))
	}
	out := []Block{{Lines: inputs}}
	if lines := append(changedDefaults(c), lackingLines(c)...); len(lines) > 0 {
		out = append(out, Block{Lines: lines})
	}
	if len(c.Cells)+len(c.Kex) > 0 {
		out = append(out, howToRead(c))
	}
	if len(c.Overall) > 0 {
		b := briefGroups(c, fmt.Sprintf("OVERALL, %s", unit.Count(len(c.Cells), "combination")), []compare.Group{{Name: "all together", Ratios: c.Overall}})
		if all {
			b = withOrder(b, c.Order)
		}
		out = append(out, b)
	}
	out = append(out, briefParts(c, all)...)
	if len(c.Cells) > 0 && all {
		out = append(out, briefCells(c))
	}
	if len(c.Machines) > 0 {
		out = append(out, briefMachines(c))
	}
	if len(c.Figures) > 0 {
		out = append(out, briefFigures(c))
	}
	last := &out[len(out)-1]
	for _, warning := range c.Warnings {
		last.Lines = append(last.Lines, "warning: "+warning.Text)
	}
	return cleanBlocks(out)
}

// briefParts are the tables of ciphers, MACs and logins: what changed, and how much
// did not.
func briefParts(c *compare.Comparison, all bool) []Block {
	var out []Block
	var unchanged []string
	for _, of := range []struct {
		title, noun string
		groups      []compare.Group
	}{{"CIPHERS", "cipher", c.Ciphers}, {"MACS", "MAC", c.MACs}, {"LOGINS by " + c.KexBasis(), "key exchange", c.Kex}} {
		shown := slices.DeleteFunc(slices.Clone(of.groups), func(g compare.Group) bool { return !all && !changed(g) })
		if len(shown) > 0 {
			out = append(out, briefGroups(c, of.title, shown))
		}
		if n := len(of.groups) - len(shown); n > 0 {
			unchanged = append(unchanged, unit.Count(n, of.noun))
		}
	}
	if len(unchanged) > 0 {
		out = append(out, Block{Lines: []string{"UNCHANGED: " + strings.Join(unchanged, ", ") + "; every line: compare --all"}})
	}
	return out
}

// changed reports whether a verdict says so of any file.
func changed(g compare.Group) bool {
	return slices.ContainsFunc(g.Ratios, func(r compare.Ratio) bool { return r.Differs() })
}

// howToRead says what the figures are.
func howToRead(c *compare.Comparison) Block {
	unit := "CPU s/GB"
	if c.By == rank.Throughput {
		unit = "MB/s"
	}
	lines := []string{
		fmt.Sprintf("Speeds relative to A by %s (%s): above 1 is faster.", c.BulkBasis(), unit),
		"±: 95 % interval, including run-to-run variation. *: than the other lines.",
		fmt.Sprintf("equal: within %.0f %%. ~: not enough data.", 100*stats.Margin),
	}
	lines = append(lines, nonEmpty(leastText(c.Shows()))...)
	if len(c.Normalised) > 0 {
		lines = append(lines, "normalised to the geometric mean of "+strings.Join(c.Normalised, ", ")+" in each file")
	}
	return Block{Lines: lines}
}

// briefGroups is one line a group: its name and its ratio in each file.
func briefGroups(c *compare.Comparison, title string, groups []compare.Group) Block {
	b := Block{Title: title, Fields: []Field{{Width: 36, Cut: true}}}
	b = b.withRatios(c)
	for _, g := range groups {
		b.Rows = append(b.Rows, append([]string{Short(g.Name)}, ratioTexts(g.Ratios)...))
	}
	return b
}

// withRatios adds a field for the ratio of each file after the first, under
// its letter where there are several.
func (b Block) withRatios(c *compare.Comparison) Block {
	head := make([]string, len(b.Fields))
	for i := range c.Inputs[1:] {
		b.Fields = append(b.Fields, Field{Width: 20})
		head = append(head, letter(i+1)+"/A")
	}
	b.Heads = [][]string{head}
	return b
}

// withOrder adds how far the files order the cells alike.
func withOrder(b Block, order []float64) Block {
	if len(order) == 0 {
		return b
	}
	row := []string{"order of the cells, Kendall's tau"}
	for _, tau := range order {
		row = append(row, fmt.Sprintf("%.3f", tau))
	}
	b.Rows = append(b.Rows, row)
	return b
}

// ratioTexts are ratios in 20 columns each, such as "1.052 ±1.3% faster".
func ratioTexts(ratios []compare.Ratio) []string {
	var out []string
	for _, r := range ratios {
		verdict := Faster(r.Verdict)
		if r.Verdict == stats.NotEnough {
			verdict = "~"
		}
		if r.ByRest {
			verdict += "*"
		}
		out = append(out, fmt.Sprintf("%5.3f %-6s %-7s", r.Speed.Value(), Spread(interval(r.Speed)), verdict))
	}
	return out
}

// briefCells shows the values of both files where there are two.
func briefCells(c *compare.Comparison) Block {
	b := Block{Title: "COMBINATIONS", Fields: []Field{{Width: 17, Cut: true}, {Width: 17, Cut: true}}}
	pair := len(c.Inputs) == 2
	if pair {
		b.Fields = append(b.Fields, Field{Width: 6, Right: true}, Field{Width: 6, Right: true})
	}
	b = b.withRatios(c)
	_, _, scale := valueUnit(c)
	for _, cell := range c.Cells {
		row := []string{Short(cell.Suite.Cipher), Short(cell.Suite.MAC)}
		if pair {
			row = append(row, shown(cell.Values[0], scale), shown(cell.Values[1], scale))
		}
		b.Rows = append(b.Rows, append(row, ratioTexts(cell.Ratios)...))
	}
	return b
}

func briefMachines(c *compare.Comparison) Block {
	b := Block{Title: "Machines: log(cost) = machine + cell; what deviates most"}
	for i, m := range c.Machines {
		b.Lines = append(b.Lines, fmt.Sprintf("%s  speed %.3f, cells deviate by %.1f %% from it", letter(i), m.Speed, m.Residual))
		for _, d := range m.Deviating {
			b.Lines = append(b.Lines, fmt.Sprintf("     %s %s: %.2f x what is expected", Short(d.Suite.Cipher), Short(d.Suite.MAC), d.Factor))
		}
	}
	return b
}
