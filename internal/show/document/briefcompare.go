package document

import (
	"fmt"
	"strings"

	"sshpace/internal/verdict/compare"
	"sshpace/internal/verdict/rank"
)

// briefComparison is a comparison in 80 columns, or more where there are many
// files. Speeds are relative to the first file.
func briefComparison(c *compare.Comparison) []Block {
	var inputs []string
	for i, in := range c.Inputs {
		e := in.Ranking.Environment
		inputs = append(inputs, letter(i)+"  "+strings.Join(nonEmpty(in.Label, e.CPU, e.Client), ", "))
	}
	out := []Block{{Lines: inputs}}
	if len(c.Cells)+len(c.Kex) > 0 {
		out = append(out, howToRead(c))
	}
	if len(c.Overall) > 0 {
		b := briefGroups(c, fmt.Sprintf("Overall (%d cells)", len(c.Cells)), []compare.Group{{Name: "geometric mean", Ratios: c.Overall}})
		out = append(out, withOrder(b, c.Order))
	}
	for _, of := range []struct {
		title  string
		groups []compare.Group
	}{{"Ciphers", c.Ciphers}, {"MACs", c.MACs}, {"Logins by " + c.KexBasis(), c.Kex}} {
		if len(of.groups) > 0 {
			out = append(out, briefGroups(c, of.title, of.groups))
		}
	}
	if len(c.Cells) > 0 {
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

func howToRead(c *compare.Comparison) Block {
	unit := "CPU s/GB"
	if c.By == rank.Throughput {
		unit = "MB/s"
	}
	b := Block{Title: fmt.Sprintf("by %s, %s; above 1: faster than A; ~ no difference shown; * differs from the other lines; ± holds how much runs differ as a whole",
		c.BulkBasis(), unit)}
	if len(c.Normalised) > 0 {
		b.Lines = []string{"normalised to the geometric mean of " + strings.Join(c.Normalised, ", ") + " in each file"}
	}
	return b
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
	if len(c.Inputs) > 2 {
		b.Heads = [][]string{head}
	}
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
		verdict := string(r.Verdict)
		if r.Verdict == compare.Unclear {
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
	b := Block{Title: "Cells", Fields: []Field{{Width: 17, Cut: true}, {Width: 17, Cut: true}}}
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
