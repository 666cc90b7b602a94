package document

import (
	"fmt"
	"strconv"
	"strings"

	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// briefCeilings says how near the fastest cell comes to what its machine can do.
func briefCeilings(c *rank.Ceilings) Block {
	name := strings.Join(nonEmpty(Short(c.Cell.Suite.Cipher), Short(c.Cell.Suite.MAC)), " ")
	b := Block{
		Title:  fmt.Sprintf("Ceilings of %s, %s, %s MB/s", name, c.Cell.Direction, shown(c.Cell.Throughput, 1e6)),
		Fields: []Field{{Width: 42, Cut: true}, {Width: 8, Right: true}, {Width: 8, Right: true}, {}},
		Heads:  [][]string{{"", "MB/s", "share"}},
	}
	for _, r := range c.Rows {
		share, mark := fmt.Sprintf("%.0f %%", 100*r.Share), ""
		switch {
		case r.Control:
			share, mark = "-", "control"
		case r.Name == c.Limiting:
			mark = "limiting"
		}
		b.Rows = append(b.Rows, []string{r.Name, Figure(r.Limit / 1e6), share, mark})
	}
	if c.Limiting == "" {
		b.Lines = append(b.Lines, "nothing of this is near: the link, the window of 2 MiB or the scheduler limits")
	}
	if c.Disk != "" {
		b.Lines = append(b.Lines, "a copy of files is limited by the disk: "+c.Disk+" is slower than SSH")
	}
	return b
}

// OfMachine is the brief report of a machine's limits: in MB/s and in operations
// per second.
func OfMachine(f *record.File) *Document {
	e := f.Environment
	out := []Block{{Lines: []string{fmt.Sprintf("%s: %s, %d cores, %s", orUnknown(f.Campaign.Target), orUnknown(e.CPU), e.Cores, orUnknown(e.Crypto))}}}
	for _, of := range []struct {
		unit  string
		scale func(record.Measurement) (scale float64, ok bool)
	}{
		{"MB/s", func(m record.Measurement) (float64, bool) {
			rate, ok := m.BytesPerSecond()
			return rate / 1e6 / m.Value, ok
		}},
		{"operations/s", func(m record.Measurement) (float64, bool) { return 1, m.Unit == record.PerSecond }},
	} {
		if b := briefLimits(of.unit, f.Measurements, of.scale); len(b.Rows) > 0 {
			out = append(out, b)
		}
	}
	last := &out[len(out)-1]
	for _, finding := range f.Findings {
		last.Lines = append(last.Lines, fmt.Sprintf("note: %s: %s", finding.What, finding.Why))
	}
	return &Document{Title: "Limits of the machine", Brief: cleanBlocks(out)}
}

// briefLimits is the table of those that have a scale in one unit, with the range
// of their rounds.
func briefLimits(unit string, all []record.Measurement, scaleOf func(record.Measurement) (scale float64, ok bool)) Block {
	b := Block{Fields: []Field{{Width: 40, Cut: true}, {Width: 14, Right: true}, {}}, Heads: [][]string{{"", unit}}}
	for _, m := range all {
		scale, ok := scaleOf(m)
		if !ok {
			continue
		}
		row := []string{m.Name, Figure(m.Value * scale)}
		if m.N > 1 {
			row = append(row, fmt.Sprintf(" %s to %s in %d rounds", Figure(m.Lo*scale), Figure(m.Hi*scale), m.N))
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// briefMeasurements lists a file's own measurements.
func briefMeasurements(all []record.Measurement) Block {
	b := Block{Title: "Measurements", Fields: []Field{{Width: 40, Cut: true}, {Width: 14, Right: true}, {Width: 8}, {}}}
	for _, m := range all {
		row := []string{m.Name, asPrinted(m.Value), string(m.Unit)}
		if m.N > 1 && m.Hi > m.Lo {
			row = append(row, fmt.Sprintf("%s to %s in %d runs", asPrinted(m.Lo), asPrinted(m.Hi), m.N))
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// briefFigures lists the measurements of all files, one row each, in the units of
// the programs that measured them. More files than fit beside each other make the
// lines longer: what is compared stays in one row.
func briefFigures(c *compare.Comparison) Block {
	b := Block{Title: "Machines, in the units of the programs that measured them", Fields: []Field{{Width: 34, Cut: true}, {Width: 7}}}
	head := []string{"", ""}
	for i := range c.Inputs {
		b.Fields, head = append(b.Fields, Field{Width: 12, Right: true}), append(head, letter(i))
	}
	pair := len(c.Inputs) == 2
	if pair {
		b.Fields, head = append(b.Fields, Field{Width: 7, Right: true}), append(head, "B/A")
	}
	b.Heads = [][]string{head}
	for _, f := range c.Figures {
		row := []string{f.Name, string(f.Unit)}
		for _, v := range f.Values {
			shown := "-"
			if v != nil {
				shown = asPrinted(v.Value)
			}
			row = append(row, shown)
		}
		if pair && f.Speeds[0] > 0 {
			row = append(row, fmt.Sprintf("%.3f", f.Speeds[0]))
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// asPrinted is a figure with all the digits that its program printed, but never
// more than four after the point.
func asPrinted(value float64) string {
	digits := 0
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if _, fraction, ok := strings.Cut(text, "."); ok && value < 1e7 {
		digits = min(4, len(fraction))
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', digits, 64), ".0")
}
