package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
	"sshpace/internal/verdict/ways"
)

// OfWays is the report of ways to move bytes: what people do with SSH, or clients
// with servers.
func OfWays(results []ways.Result, f *record.File) *Document {
	d := &Document{Title: "Ways to move bytes", Environment: facts([]Fact{
		{"target", f.Campaign.Target}, {"processor", f.Environment.CPU}, {"cores", strconv.Itoa(f.Environment.Cores)},
		{"client", f.Environment.Client}, {"server", f.Environment.Server},
	})}
	measured := slices.DeleteFunc(slices.Clone(results), func(r ways.Result) bool { return r.Rate.N == 0 })
	d.Tables = append(d.Tables, wayTable(measured))
	head := Block{Lines: []string{fmt.Sprintf("%s: %s, %d cores", orUnknown(f.Campaign.Target), orUnknown(f.Environment.CPU), f.Environment.Cores)}}
	if f.Environment.Client != "" {
		head.Lines = append(head.Lines, fmt.Sprintf("%s to %s", f.Environment.Client, orUnknown(f.Environment.Server)))
	}
	d.Brief = append(d.Brief, head, briefWays(measured, paired(results)), Block{Lines: unmeasured(results, f)}, Block{Lines: limitLines(f.Limits)})
	d.Brief = slices.DeleteFunc(cleanBlocks(d.Brief), func(b Block) bool { return len(b.Rows) == 0 && len(b.Lines) == 0 })
	d.Method = []string{howWays}
	return d
}

const howWays = "MB/s and CPU are those of long runs without what runs of one byte take (start); medians, and their 95 % interval, or their range where there are fewer than 6 rounds."

// paired reports whether the ways are pairs of implementations.
func paired(results []ways.Result) bool {
	return slices.ContainsFunc(results, func(r ways.Result) bool { return r.Server != "" })
}

// wayName is what a way is called.
func wayName(w record.Way) string {
	name := string(w.Mode)
	if w.Streams > 1 {
		name = fmt.Sprintf("%s %d", name, w.Streams)
	}
	if w.Files > 0 {
		name += fmt.Sprintf(" %dx%s", w.Files, w.FileBytes)
	}
	if w.Compression {
		name += " -C"
	}
	return text(name)
}

// WayLabel is what a way is called in one line.
func WayLabel(w record.Way) string {
	if w.Server != "" {
		return text(w.Client + " to " + w.Server)
	}
	return wayName(w) + " " + string(w.Direction)
}

// briefWays is the table for a terminal.
func briefWays(results []ways.Result, pairs bool) Block {
	b := Block{Lines: []string{"", howWays}}
	if pairs {
		b.Fields = []Field{{Width: 18, Cut: true}, {Width: 18, Cut: true}, {Width: 6, Right: true}, {Width: 5, Right: true}, {Width: 6, Right: true}, {Width: 6, Right: true}, {Width: 13, Cut: true}}
		b.Heads = [][]string{{"", "", "login", "", "client", "server", ""}, {"client", "server", "ms", "MB/s", "s/GB", "s/GB", "cipher"}}
	} else {
		b.Fields = []Field{{Width: 18, Cut: true}, {Width: 9}, {Width: 6, Right: true}, {Width: 13}, {Width: 7, Right: true}, {Width: 7, Right: true}, {Width: 6, Right: true}, {Width: 12, Cut: true}}
		b.Heads = [][]string{{"", "", "", "", "client", "server", "start", ""}, {"way", "", "MB/s", "", "s/GB", "s/GB", "s", "cipher"}}
	}
	if len(results) == 0 {
		return Block{}
	}
	for _, r := range results {
		cost := []string{shownCost(r.ClientCost), shownCost(r.ServerCost)}
		if pairs {
			b.Rows = append(b.Rows, slices.Concat([]string{text(r.Client), text(r.Server), figure(r.Login, 1e3), figure(r.Rate, 1e-6)}, cost, []string{Short(r.Suite.Cipher)}))
			continue
		}
		span := fmt.Sprintf("%s to %s", Figure(r.Rate.Lo/1e6), Figure(r.Rate.Hi/1e6))
		b.Rows = append(b.Rows, slices.Concat([]string{wayName(r.Way), string(r.Direction), figure(r.Rate, 1e-6), span}, cost, []string{figure(r.Start, 1), Short(r.Suite.Cipher)}))
	}
	return b
}

// figure is a median in a unit; "" where there is none.
func figure(i stats.Interval, scale float64) string {
	if i.N == 0 {
		return ""
	}
	return Figure(i.Value * scale)
}

// shownCost is CPU time per byte as seconds per GB, which are the same number.
func shownCost(i stats.Interval) string {
	if i.N == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", i.Value)
}

// unmeasured are the ways that gave no figures, with the reason, and what else
// went wrong or is broken.
func unmeasured(results []ways.Result, f *record.File) []string {
	var lines []string
	for _, r := range results {
		switch {
		case r.Why != "":
			lines = append(lines, fmt.Sprintf("not measured: %s: %s", WayLabel(r.Way), text(r.Why)))
		case len(r.Failed) > 0:
			lines = append(lines, fmt.Sprintf("%s failed %s: %s", WayLabel(r.Way), unit.Count(len(r.Failed), "time"), text(r.Failed[len(r.Failed)-1])))
		case r.Rate.N == 0:
			lines = append(lines, fmt.Sprintf("no figure: %s: %s take no longer than one byte; more with --size", WayLabel(r.Way), r.SizeBytes))
		}
	}
	var told []string
	for _, r := range results {
		for _, line := range standings(r.Suite) {
			if r.Rate.N > 0 && !slices.Contains(told, line) {
				told = append(told, line)
			}
		}
	}
	lines = append(lines, told...)
	for _, finding := range f.Findings {
		lines = append(lines, text(fmt.Sprintf("note: %s: %s", finding.What, finding.Why)))
	}
	return lines
}

// standings are a line for each algorithm of a suite that should not be used.
func standings(s alg.Suite) []string {
	var lines []string
	for _, name := range []struct {
		kind alg.Kind
		name string
	}{{alg.Cipher, s.Cipher}, {alg.MAC, s.MAC}, {alg.Kex, s.Kex}} {
		a, known := alg.Lookup(name.kind, name.name)
		if name.name != "" && (!known || a.Status == alg.Weak || a.Status == alg.Broken) {
			lines = append(lines, text(fmt.Sprintf("%s is %s: %s", Short(name.name), Standing(a.Status), cmp.Or(a.Reason, "no table of ours knows it"))))
		}
	}
	return lines
}

// wayTable is the table for all other formats.
func wayTable(results []ways.Result) Table {
	t := Table{Name: "ways", Title: "Ways to move bytes", Note: howWays, Columns: []Column{
		{Key: "mode", Head: "way"}, {Key: "direction", Head: "direction"}, {Key: "client", Head: "client", Minor: true}, {Key: "server", Head: "server", Minor: true},
		{Key: "cipher", Head: "cipher"}, {Key: "mac", Head: "MAC", Minor: true},
		{Key: "throughput_bytes_per_s", Head: "throughput", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
		{Key: "client_ns_per_byte", Head: "client", Unit: "CPU s/GB", Scale: 1, Kind: Quantity},
		{Key: "server_ns_per_byte", Head: "server", Unit: "CPU s/GB", Scale: 1, Kind: Quantity},
		{Key: "start_s", Head: "start", Unit: "s", Scale: 1, Kind: Quantity, Minor: true},
		{Key: "login_s", Head: "login", Unit: "s", Scale: 1, Kind: Quantity, Minor: true},
	}}
	for _, r := range results {
		cells := []Cell{{Text: wayName(r.Way)}, {Text: string(r.Direction)}, {Text: text(r.Client)}, {Text: text(r.Server)}, {Text: text(r.Suite.Cipher)}, {Text: text(r.Suite.MAC)}}
		for _, q := range []stats.Interval{r.Rate, r.ClientCost, r.ServerCost, r.Start, r.Login} {
			cells = append(cells, Cell{Quantity: known(q)})
		}
		t.Rows = append(t.Rows, Row{Suite: safe(r.Suite), Cells: cells})
	}
	return t
}

// known is nil for what was not measured.
func known(i stats.Interval) *rank.Quantity {
	if i.N == 0 {
		return nil
	}
	return &i
}

// limitLines say what limits each transfer that was looked at, and what would
// help.
func limitLines(limits []record.Limit) []string {
	var lines []string
	for _, l := range limits {
		lines = append(lines, text(fmt.Sprintf("Limit (%s %s): %s", l.Mode, l.Direction, cmp.Or(l.Sentence, l.What))))
		if l.Help != "" {
			lines = append(lines, text("What helps: "+l.Help))
		}
	}
	return lines
}
