package document

import (
	"fmt"
	"strings"

	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// machineTables are what a ranking knows of its machine besides SSH.
func machineTables(r *rank.Ranking) []Table {
	var out []Table
	if r.Ceilings != nil {
		out = append(out, ceilingTable(r.Ceilings))
	}
	if len(r.Measurements) > 0 {
		out = append(out, measurementTable(r.Measurements))
	}
	return out
}

// ceilingTable says how near the fastest cell comes to each limit.
func ceilingTable(c *rank.Ceilings) Table {
	t := Table{
		Name: "ceilings", Title: fmt.Sprintf("Ceilings of %s %s", label(c.Cell.Suite), c.Cell.Direction),
		Note: "What the machine can do at most, and the share of it that SSH reaches.",
		Columns: []Column{
			{Key: "name", Head: "limit"},
			{Key: "limit_bytes_per_s", Head: "at most", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
			{Key: "share_pct", Head: "share", Unit: "%", Scale: 1, Kind: Quantity},
			{Key: "limiting", Head: "limiting"},
		},
	}
	for _, row := range c.Rows {
		share, limiting := exact(100*row.Share), ""
		switch {
		case row.Control:
			share, limiting = Cell{}, "control"
		case row.Name == c.Limiting:
			limiting = "limiting"
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: text(row.Name)}, exact(row.Limit), share, {Text: limiting}}})
	}
	return t
}

func measurementTable(all []record.Measurement) Table {
	t := Table{
		Name: "measurements", Title: "Measurements besides SSH", Note: "In the units of the programs that measured them.",
		Columns: []Column{
			{Key: "source", Head: "program", Minor: true}, {Key: "name", Head: "what"},
			{Key: "value", Head: "value", Scale: 1, Kind: Quantity}, {Key: "unit", Head: "unit"},
		},
	}
	for _, m := range all {
		q := &rank.Quantity{Value: m.Value, Lo: m.Value, Hi: m.Value, N: m.N}
		if m.Hi > 0 {
			q.Lo, q.Hi = m.Lo, m.Hi
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: text(m.Source)}, {Text: text(m.Name)}, {Quantity: q}, {Text: text(string(m.Unit))}}})
	}
	return t
}

// figureTable is what the files of a comparison hold besides SSH, side by side.
func figureTable(c *compare.Comparison) Table {
	t := Table{
		Name: "figures", Title: "Machines besides SSH", Note: "In the units of the programs that measured them.",
		Columns: []Column{{Key: "source", Head: "program", Minor: true}, {Key: "name", Head: "what"}, {Key: "unit", Head: "unit"}},
	}
	for i := range c.Inputs {
		key := "value_" + strings.ToLower(letter(i))
		t.Columns = append(t.Columns, Column{Key: key, Head: fileName(c, i), Scale: 1, Kind: Quantity})
	}
	for _, f := range c.Figures {
		cells := []Cell{{Text: text(f.Source)}, {Text: text(f.Name)}, {Text: text(string(f.Unit))}}
		for _, v := range f.Values {
			cells = append(cells, Cell{Quantity: v})
		}
		t.Rows = append(t.Rows, Row{Cells: cells})
	}
	return t
}
