package document

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// OfMethods is the report of transfer methods: what people do with SSH, or clients
// with servers.
func OfMethods(results []compare.MethodResult, f *record.File) *Document {
	d := &Document{Title: "Ways to move bytes", Environment: facts([]Fact{
		{"target", f.Campaign.Target}, {"processor", f.Environment.CPU}, {"cores", strconv.Itoa(f.Environment.Cores)},
		{"client", f.Environment.Client}, {"server", f.Environment.Server},
	})}
	measured := slices.DeleteFunc(slices.Clone(results), func(r compare.MethodResult) bool { return r.Rate.N == 0 })
	d.Tables = append(d.Tables, methodTable(measured))
	d.Lead = limitLines(f.Limits)
	for _, line := range unmeasured(results, f) {
		d.Doubts = append(d.Doubts, Doubt{Text: line})
	}
	head := Block{Lines: []string{fmt.Sprintf("%s: %s, %d cores", orUnknown(f.Campaign.Target), orUnknown(f.Environment.CPU), f.Environment.Cores)}}
	if path := sharedPath(results); path != "" {
		head.Lines = append(head.Lines, "over a path of"+path)
	}
	if f.Environment.Client != "" {
		head.Lines = append(head.Lines, fmt.Sprintf("%s to %s", f.Environment.Client, orUnknown(f.Environment.Server)))
	}
	if chart, ok := tripChart(results); ok {
		d.Charts = append(d.Charts, chart)
	} else if len(measured) > 0 {
		d.Charts = append(d.Charts, methodChart(measured))
	}
	d.Brief = append(append(d.Brief, head, briefMethods(measured, paired(results))), briefTrips(results)...)
	d.Brief = append(d.Brief, Block{Lines: append(unmeasured(results, f), controlLines(f)...)}, Block{Lines: limitLines(f.Limits)})
	d.Brief = slices.DeleteFunc(cleanBlocks(d.Brief), func(b Block) bool { return len(b.Rows) == 0 && len(b.Lines) == 0 })
	d.Method = []string{howMethods}
	return d
}

// methodChart draws how fast each way is.
func methodChart(measured []compare.MethodResult) Chart {
	c := Chart{
		Name: "ways", Table: "ways", Shape: Bars, Unit: "MB/s", Series: []string{"throughput"}, Rising: true,
		Title: "How fast each way is", Note: "More is better. The lines are 95 % intervals, or ranges where there are fewer than 6 rounds.",
	}
	for _, r := range measured {
		label := MethodLabel(r.Method)
		if cipher := Short(r.Suite.Cipher); cipher != "" {
			label += ", " + cipher
		}
		c.Items = append(c.Items, Item{Label: label, Suite: r.Suite, Points: []Point{point(&r.Rate, 1e6)}})
	}
	return c
}

const howMethods = "MB/s and CPU are those of long runs without what runs of one byte take (start); medians, and their 95 % interval, or their range where there are fewer than 6 rounds."

// paired reports whether the methods are pairs of implementations.
func paired(results []compare.MethodResult) bool {
	return slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.Server != "" })
}

// methodName is what a method is called.
func methodName(m record.Method) string {
	name := string(m.Mode)
	if m.Streams > 1 {
		name = fmt.Sprintf("%s %d", name, m.Streams)
	}
	if m.Files > 0 {
		name += fmt.Sprintf(" %dx%s", m.Files, m.FileBytes)
	}
	if m.Compression {
		name += " -C"
	}
	return text(name)
}

// MethodLabel is what a method is called in one line.
func MethodLabel(m record.Method) string {
	if m.Server != "" {
		return text(m.Client+" to "+m.Server) + pathText(m.Path)
	}
	return strings.TrimSpace(methodName(m)+" "+string(m.Direction)) + pathText(m.Path)
}

// briefMethods is the table for a terminal.
func briefMethods(results []compare.MethodResult, pairs bool) Block {
	if len(results) == 0 {
		return Block{}
	}
	if pairs {
		return briefPairs(results)
	}
	b := Block{Lines: []string{"", howMethods}, Fields: []Field{{Cut: true}, {Width: 8}, {Width: 6, Right: true}, {Width: 6}, {Width: 6, Right: true}, {Width: 6, Right: true}, {Width: 5, Right: true}}}
	b.Heads = [][]string{{"", "", "", "", "client", "server", "start"}, {"way", "", "MB/s", "", "s/GB", "s/GB", "s"}}
	room := 80 - 8 - 6 - 6 - 6 - 6 - 5 - len(b.Fields)
	several := len(ciphersOf(results)) > 1
	if several {
		b.Fields, b.Heads[1] = append(b.Fields, Field{Width: 12, Cut: true}), append(b.Heads[1], "cipher")
		room -= 13
	} else {
		b.Title = "with " + ciphersOf(results)[0]
	}
	for _, r := range results {
		name := methodName(r.Method)
		if r.RTT > 0 {
			name += ", " + r.RTT.String()
		}
		b.Fields[0].Width = min(room, max(b.Fields[0].Width, len(name)))
		row := []string{name, string(r.Direction), figure(r.Rate, 1e-6), Spread(&r.Rate), shownCost(r.ClientCost), shownCost(r.ServerCost), figure(r.Start, 1)}
		if several {
			row = append(row, Short(r.Suite.Cipher))
		}
		b.Rows = append(b.Rows, row)
	}
	return b
}

// ciphersOf are the ciphers of methods, by their short names.
func ciphersOf(results []compare.MethodResult) (names []string) {
	for _, r := range results {
		names = appendNew(names, Short(r.Suite.Cipher))
	}
	return names
}

// briefPairs is the same of pairs of implementations.
func briefPairs(results []compare.MethodResult) Block {
	b := Block{Lines: []string{"", howMethods}, Fields: []Field{{Width: 18, Cut: true}, {Width: 18, Cut: true}, {Width: 6, Right: true}, {Width: 5, Right: true}, {Width: 6, Right: true}, {Width: 6, Right: true}, {Width: 13, Cut: true}}}
	b.Heads = [][]string{{"", "", "login", "", "client", "server", ""}, {"client", "server", "ms", "MB/s", "s/GB", "s/GB", "cipher"}}
	far := slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.RTT > 0 })
	if far {
		b.Fields[1].Width, b.Fields[6].Width = 16, 8
		b.Fields = append(b.Fields, Field{Width: 6, Right: true})
		b.Heads[0], b.Heads[1] = append(b.Heads[0], "round"), append(b.Heads[1], "trip")
	}
	for _, r := range results {
		row := []string{text(r.Client), text(r.Server), figure(r.Login, 1e3), figure(r.Rate, 1e-6), shownCost(r.ClientCost), shownCost(r.ServerCost), Short(r.Suite.Cipher)}
		if far {
			row = append(row, r.RTT.String())
		}
		b.Rows = append(b.Rows, row)
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
	if i.N == 0 || i.Value <= 0 { // what is left of a long run was below the noise
		return ""
	}
	return Figure(i.Value)
}

// unmeasured are the methods that gave no figures, with the reason, and what else
// went wrong or is broken.
func unmeasured(results []compare.MethodResult, f *record.File) []string {
	var lines []string
	several := len(ciphersOf(results)) > 1
	label := func(r compare.MethodResult) string {
		if several && r.Suite.Cipher != "" {
			return MethodLabel(r.Method) + ", " + Short(r.Suite.Cipher)
		}
		return MethodLabel(r.Method)
	}
	for _, r := range results {
		switch {
		case r.Why != "":
			lines = append(lines, fmt.Sprintf("not measured: %s: %s", label(r), text(r.Why)))
		case len(r.Failed) > 0:
			lines = append(lines, fmt.Sprintf("%s failed %s: %s", label(r), unit.Count(len(r.Failed), "time"), text(r.Failed[len(r.Failed)-1])))
		case r.Rate.N == 0 && !r.Ran():
			lines = append(lines, fmt.Sprintf("no figure yet: %s: the run ended before its turn", label(r)))
		case r.Rate.N == 0:
			more := "--size"
			if r.Files > 0 {
				more = "--files"
			}
			lines = append(lines, fmt.Sprintf("no figure: %s: %s take hardly longer than one byte; more with %s", label(r), r.SizeBytes, more))
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

// controlLines say how fast files are read by themselves, and what comparing them
// took.
func controlLines(f *record.File) (lines []string) {
	rates := map[string]float64{}
	for _, m := range f.Measurements {
		rates[m.Name] = m.Value
	}
	switch cached, disk := rates[record.FileCached], rates[record.FileDisk]; {
	case disk > 0:
		lines = append(lines, fmt.Sprintf("Files by themselves are read at %s MB/s from memory (page cache) and %s MB/s from the disk.", Figure(cached/1e6), Figure(disk/1e6)))
	case cached > 0:
		lines = append(lines, fmt.Sprintf("Files are in memory, where they are read at %s MB/s.", Figure(cached/1e6)))
	}
	var took time.Duration
	files := 0
	for _, run := range f.Runs {
		if took += run.VerifiedNS; run.VerifiedNS > 0 {
			files++
		}
	}
	lines = append(lines, scaling(compare.MethodResults(f))...)
	if files > 0 {
		lines = append(lines, fmt.Sprintf("Copies were compared by SHA-256 after the clock had stopped: %s s for %s.", Figure(took.Seconds()), unit.Count(files, "run")))
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

// methodTable is the table for all other formats.
func methodTable(results []compare.MethodResult) Table {
	t := Table{Name: "ways", Title: "Ways to move bytes", Note: howMethods, Columns: []Column{
		{Key: "mode", Head: "way"}, {Key: "direction", Head: "direction"}, {Key: "client", Head: "client", Minor: true}, {Key: "server", Head: "server", Minor: true},
		{Key: "cipher", Head: "cipher"}, {Key: "mac", Head: "MAC", Minor: true},
		{Key: "throughput_bytes_per_s", Head: "throughput", Unit: "MB/s", Scale: 1e6, Kind: Quantity},
		{Key: "client_ns_per_byte", Head: "client", Unit: "CPU s/GB", Scale: 1, Kind: Quantity},
		{Key: "server_ns_per_byte", Head: "server", Unit: "CPU s/GB", Scale: 1, Kind: Quantity},
		{Key: "path_rtt_ms", Head: "round trip, ms", Minor: true},
		{Key: "start_s", Head: "start", Unit: "s", Scale: 1, Kind: Quantity, Minor: true},
		{Key: "login_s", Head: "login", Unit: "s", Scale: 1, Kind: Quantity, Minor: true},
	}}
	for _, r := range results {
		cells := []Cell{{Text: methodName(r.Method)}, {Text: string(r.Direction)}, {Text: text(r.Client)}, {Text: text(r.Server)}, {Text: text(r.Suite.Cipher)}, {Text: text(r.Suite.MAC)}}
		for _, q := range []stats.Interval{r.Rate, r.ClientCost, r.ServerCost} {
			cells = append(cells, Cell{Quantity: known(q)})
		}
		cells = append(cells, Cell{Text: strconv.FormatFloat(milliseconds(r.RTT), 'f', -1, 64)}, Cell{Quantity: known(r.Start)}, Cell{Quantity: known(r.Login)})
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
		method := record.Method{Mode: l.Mode, Direction: l.Direction, Compression: l.Evidence.Compressed, Path: l.Path}
		lines = append(lines, text(fmt.Sprintf("Limit (%s): %s", MethodLabel(method), cmp.Or(l.Sentence, l.What))))
		if l.Help != "" {
			lines = append(lines, text("What helps: "+l.Help))
		}
	}
	return lines
}
