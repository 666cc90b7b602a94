package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// ceilingTable shows how near the fastest cell comes to each limit.
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

// measurementTable shows rates in MB/s, in whatever units programs print them, and everything else
// in its own unit.
func measurementTable(all []record.Measurement) Table {
	t := Table{
		Name: "measurements", Title: "Measurements besides SSH",
		Columns: []Column{
			{Key: "source", Head: "program", Minor: true}, {Key: "name", Head: "what", Terse: " ", Fit: text.Cut},
			{Key: "value", Head: "value", Scale: 1, Kind: Quantity}, {Key: "unit", Head: "unit", Terse: " "},
		},
	}
	for _, m := range all {
		q, unit := compare.RangeOf(m), clean(string(m.Unit))
		if one, ok := m.Unit.BytesPerSecond(); ok {
			q, unit = q.Mapped(func(v float64) float64 { return v * one / 1e6 }), "MB/s"
		}
		t.Rows = append(t.Rows, Row{Cells: []Cell{{Text: clean(m.Source)}, {Text: clean(m.Name)}, {Quantity: &q}, {Text: unit}}})
	}
	return t
}

// OfMachine returns the report of a machine's limits; all is for a terminal, and commands continue
// from it.
func OfMachine(f *record.File, all bool, commands Commands) *Document {
	d := &Document{
		Title: "Measurements of " + clean(cmp.Or(f.Campaign.Target, unknownWord)), Lead: machineLead(f.Measurements), Tables: []Table{measurementTable(f.Measurements)},
		Environment: Environment(f), Doubts: doubts(nil, f.Findings),
	}
	e := f.Environment
	rounds := ""
	if slices.ContainsFunc(f.Measurements, func(m record.Measurement) bool { return m.N > 1 }) {
		rounds = "the range of all rounds"
	}
	last := RemarkLines([]Remark{
		{Name: "(a-b)", Value: rounds}, {Name: "measured", Value: strings.Join(text.NonEmpty(e.CPU, cores(e), library(e.Crypto)), ", ")},
	}, 0)
	if len(d.Lead) > 0 {
		d.Brief = []Table{{Lines: text.Wrap("", strings.Join(d.Lead, " "), 0)}}
	}
	d.Brief = append(d.Brief, d.Tables[0].untitled())
	if all {
		d.Brief = Clean(append(d.Brief, Table{Lines: doubtLines(d.Doubts)}, Table{Lines: last}))
		return d
	}
	d.Brief = Clean(Screenful(d.Brief, doubtLines(d.Doubts), SavedLines, commands.All(), last))
	return d
}

// machineLead says how fast SSH can be at most on this machine, and how fast a core encrypts.
func machineLead(all []record.Measurement) (out []string) {
	rates, names := map[string]unit.Throughput{}, []string{}
	for _, m := range all {
		if rate, ok := m.BytesPerSecond(); ok {
			name, _, _ := strings.Cut(m.Name, ",")
			name, _, _ = strings.Cut(name, " 32768") // ssh's size of a block, among those of openssl speed
			rates[name], names = unit.Throughput(rate), append(names, name)
		}
	}
	least := record.PipeFlow
	if loopback, ok := rates[record.LoopbackFlow]; ok && (rates[least] == 0 || loopback < rates[least]) {
		least = record.LoopbackFlow
	}
	if rates[least] > 0 {
		out = append(out, fmt.Sprintf("No SSH connection on this machine can be faster than %s, the speed of its %s.", rates[least], least))
	}
	var ciphers []string
	for _, name := range names {
		if strings.HasSuffix(name, "-GCM") || strings.HasPrefix(name, "ChaCha20") {
			ciphers = append(ciphers, fmt.Sprintf("%s with %s", rates[name], clean(name)))
		}
	}
	if len(ciphers) > 0 {
		out = append(out, "One core encrypts "+strings.Join(ciphers, ", ")+".")
	}
	return out
}
