package document

import (
	"fmt"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// machineTables are what a ranking knows of its machine besides SSH.
func machineTables(r *rank.Ranking, c *compare.Ceilings) []Table {
	var out []Table
	if c != nil {
		out = append(out, ceilingTable(c))
	}
	if len(r.Measurements) > 0 {
		out = append(out, measurementTable(r.Measurements))
	}
	return out
}

// ceilingTable says how near the fastest cell comes to each limit.
func ceilingTable(c *compare.Ceilings) Table {
	t := Table{
		Name: "ceilings", Title: fmt.Sprintf("Ceilings of %s %s", label(c.Suite), c.Direction),
		Note: "The limits of the machine, and the share of each that SSH reaches.",
		Columns: []Column{
			{Key: "name", Head: "limit", Fit: text.Cut},
			{Key: "limit_bytes_per_s", Head: "at most", Terse: "MB/s", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
			{Key: "share_pct", Head: "share", Terse: "share %", Unit: "%", Scale: 1, Kind: Quantity},
			{Key: "limiting", Head: "limiting", Terse: " "},
		},
	}
	for _, row := range c.Rows {
		share, limiting := Cell{Quantity: stats.Exactly(row.Share)}, ""
		switch {
		case row.Control:
			share, limiting = Cell{}, "control"
		case row.Name == c.Limiting:
			limiting = "limiting"
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: clean(row.Name)}, {Quantity: stats.Exactly(row.Limit)}, share, {Text: limiting}}})
	}
	return t
}

func measurementTable(all []record.Measurement) Table {
	t := Table{
		Name: "measurements", Title: "Measurements besides SSH", Note: "In the units of the programs that measured them.",
		Columns: []Column{
			{Key: "source", Head: "program", Minor: true}, {Key: "name", Head: "what", Fit: text.Cut},
			{Key: "value", Head: "value", Scale: 1, Kind: Quantity}, {Key: "unit", Head: "unit"},
		},
	}
	for _, m := range all {
		q := &rank.Quantity{Value: m.Value, Lo: m.Value, Hi: m.Value, N: m.N}
		if m.Hi > 0 {
			q.Lo, q.Hi = m.Lo, m.Hi
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: clean(m.Source)}, {Text: clean(m.Name)}, {Quantity: q}, {Text: clean(string(m.Unit))}}})
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
		t.Columns = append(t.Columns, Column{Key: key, Head: fileName(c, i), Terse: letter(i), Scale: 1, Kind: Quantity})
	}
	pair := len(c.Inputs) == 2
	if pair {
		t.Columns = append(t.Columns, Column{Key: "speed_ratio_b", Head: "B/A", Terse: "B/A", Unit: ratio, Scale: 1, Kind: Quantity})
	}
	for _, f := range c.Figures {
		cells := []Cell{{Text: clean(f.Source)}, {Text: clean(f.Name)}, {Text: clean(string(f.Unit))}}
		for _, v := range f.Values {
			cells = append(cells, Cell{Quantity: v})
		}
		if pair {
			speed := Cell{}
			if f.Speeds[0] > 0 {
				speed = Cell{Quantity: stats.Exactly(f.Speeds[0])}
			}
			cells = append(cells, speed)
		}
		t.Rows = append(t.Rows, Row{Cells: cells})
	}
	return t
}

// OfMachine is the report of a machine's limits: in MB/s and in operations per second.
func OfMachine(f *record.File) *Document {
	e := f.Environment
	d := &Document{Title: "Limits of the machine"}
	for _, of := range []struct {
		key, unit string
		scale     float64
		value     func(record.Measurement) (value float64, ok bool)
	}{
		{"limit_bytes_per_s", "MB/s", 1e6, func(m record.Measurement) (float64, bool) { return m.BytesPerSecond() }},
		{"limit_per_s", "operations/s", 1, func(m record.Measurement) (float64, bool) { return m.Value, m.Unit == record.PerSecond }},
	} {
		t := Table{Name: "limits", Part: of.unit, Title: "At most, in " + of.unit, Columns: []Column{
			{Key: "name", Head: "limit", Terse: " ", Fit: text.Cut}, {Key: of.key, Head: "at most", Terse: of.unit, Unit: of.unit, Scale: of.scale, Kind: Quantity},
			{Key: "rounds", Head: "rounds", Kind: Count, Minor: true},
		}}
		for _, m := range f.Measurements {
			if value, ok := of.value(m); ok {
				q := rank.Quantity{Value: value, Lo: value, Hi: value, N: m.N}
				if m.N > 1 {
					q.Lo, q.Hi = m.Lo*value/m.Value, m.Hi*value/m.Value
				}
				t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: clean(m.Name)}, {Quantity: &q}, {Text: fmt.Sprint(m.N)}}})
			}
		}
		if len(t.Rows) > 0 {
			d.Tables = append(d.Tables, t)
		}
	}
	var notes []string
	for _, finding := range f.Findings {
		notes = append(notes, fmt.Sprintf("note: %s: %s", finding.What, finding.Why))
	}
	head := fmt.Sprintf("%s: %s, %s, %s. In brackets: the range of all rounds.", orUnknown(f.Campaign.Target), orUnknown(e.CPU), unit.Count(e.Cores, "core"), orUnknown(e.Crypto))
	d.Brief = []Block{{Lines: []string{head}}}
	for i := range d.Tables {
		d.Brief = append(d.Brief, Block{Table: &d.Tables[i]})
	}
	d.Brief = Clean(append(d.Brief, Block{Lines: notes}))
	return d
}
