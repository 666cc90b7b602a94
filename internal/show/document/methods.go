package document

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// OfMethods returns the report of transfer methods: of ssh's programs, or of clients with servers.
// all shows every method on a terminal, including those that were not measured; commands continue
// from the result.
func OfMethods(results []compare.MethodResult, f *record.File, all bool, commands Commands) *Document {
	title, what := "Transfer methods", "method"
	if paired(results) {
		title, what = "SSH programs", "pair"
	}
	d := &Document{Title: title, Environment: Environment(f)}
	measured := slices.DeleteFunc(slices.Clone(results), func(r compare.MethodResult) bool { return r.Rate.N == 0 })
	slices.SortStableFunc(measured, func(a, b compare.MethodResult) int {
		return cmp.Or(strings.Compare(string(b.Direction), string(a.Direction)), cmp.Compare(b.Rate.Value, a.Rate.Value)) // uploads first
	})
	d.Tables, d.Quality = append(d.Tables, methodTable(measured)), methodQuality(measured)
	says, enough := fastest(measured, what)
	if !enough {
		flag, takes := Longer(f, 2)
		d.Answer.Steps = []Step{{"measure longer", commands.Resume + " " + flag, takes}}
	}
	says = append(says, scaling(results)...)
	d.Lead = append(slices.Clone(says), limitLines(f.Limits)...)
	for _, line := range unmeasured(results, f, len(results)) {
		d.Doubts = append(d.Doubts, Doubt{Text: line})
	}
	if trips := overTripsOf(results); len(trips.methods) > 0 {
		d.Tables, d.Charts = append(d.Tables, trips.table()), append(d.Charts, trips.chart())
	} else if len(measured) > 0 {
		d.Charts = append(d.Charts, methodChart(measured, what))
	}
	d.Brief = briefMethods(d, len(says), results, f, all, commands.All())
	d.Method = []string{howMethods}
	d.Algorithms = Algorithms(methodSuites(measured))
	return d
}

// briefMethods returns the report for a terminal: everything, or as much as fits the screen. The
// first answer lines of the lead are the answer; the others, about limits of transfers, are
// remarks.
func briefMethods(d *Document, answer int, results []compare.MethodResult, f *record.File, all bool, more string) []Table {
	opening, limits := []Table{{Lines: d.Lead[:answer]}, {Lines: stepLines(d.Answer.Steps, 0)}}, d.Lead[answer:]
	var tables []Table
	for i := len(d.Tables) - 1; i >= 0; i-- { // over several round trips, that table first
		t := d.Tables[i]
		if t.Lines = []string{t.Note}; i == 0 {
			t.Title, t.Lines = "", nil
		}
		tables = append(tables, t)
	}
	measured := RemarkLines([]Remark{measuredMethods(results, f)}, 0)
	if all {
		remarks := append(unmeasured(results, f, len(results)), controlLines(f)...)
		return Clean(slices.Concat(opening, tables, []Table{{Lines: limits}, {Lines: remarks}, {Lines: measured}}))
	}
	tables = tables[:1] // the other one has the same figures
	return Clean(Screenful(Clean(append(opening, tables...)), append(limits, unmeasured(results, f, 1)...), SavedLines, more, measured))
}

// Longer returns the flags for times as much as was measured, and how long that takes.
func Longer(f *record.File, times float64) (flag, takes string) {
	if budget := f.Campaign.BudgetNS; budget > 0 {
		return longer(max(budget, f.Measured()), times)
	}
	rounds, made, spent := f.Campaign.Rounds, map[int]int{}, f.Measured()
	for _, run := range f.Readings {
		spent += run.WallNS
		if run.Kind == record.LongRun {
			made[run.Subject]++
			rounds = max(rounds, made[run.Subject])
		}
	}
	all := max(stats.MinExact, math.Ceil(times*float64(rounds)))
	return fmt.Sprintf("--rounds %.0f", all), takesAbout(time.Duration(float64(spent) * (all/math.Max(1, float64(rounds)) - 1)))
}

// methodQuality says how reliable the figures are, by the least certain ones.
func methodQuality(measured []compare.MethodResult) []Fact {
	rounds, rate, cpu := math.MaxInt, 0.0, 0.0
	for _, r := range measured {
		rounds = min(rounds, r.Rate.N)
		rate, cpu = max(rate, r.Rate.HalfWidth()), max(cpu, r.ClientCost.HalfWidth())
	}
	within := func(part float64) string {
		if rounds < 2 {
			return "one round gives no interval"
		}
		return "known within " + unit.Difference(part)
	}
	if len(measured) == 0 {
		return []Fact{{"figures", "none yet"}}
	}
	return Facts([]Fact{{"rounds", fmt.Sprint(rounds)}, {"throughput", within(rate)}, {"CPU time of the client", within(cpu)}})
}

func methodSuites(results []compare.MethodResult) (out []alg.Suite) {
	for _, r := range results {
		out = append(out, r.Suite)
	}
	return out
}

// fastest names the fastest method in each direction; enough reports whether there were enough data
// for that.
func fastest(measured []compare.MethodResult, what string) (out []string, enough bool) {
	enough = true
	best, count := map[record.Direction]compare.MethodResult{}, map[record.Direction]int{}
	var directions []record.Direction
	for _, r := range measured {
		if count[r.Direction]++; count[r.Direction] == 1 {
			directions = append(directions, r.Direction)
		}
		if r.Rate.Value > best[r.Direction].Rate.Value {
			best[r.Direction] = r
		}
	}
	several := len(ciphersOf(measured)) > 1
	for _, d := range directions {
		r := best[d]
		plain := r.Method
		plain.Path = record.Path{RTT: r.RTT} // all share the rest
		name := MethodLabel(plain)
		if cipher := Short(r.Suite.Cipher); several && cipher != "" {
			name += " with " + cipher
		}
		speed := r.Rate.Shown(func(v float64) string { return unit.Digits(v / 1e6) }, " MB/s")
		switch rivals := rivals(r, measured); {
		case count[d] == 1 && r.Rate.N == 1:
			out, enough = append(out, fmt.Sprintf("%s moved %s in the only usable round.", name, speed)), false
		case count[d] == 1:
			out = append(out, fmt.Sprintf("%s moves %s.", name, speed))
		case len(rivals) == 0: // each over its own path
			out = append(out, fmt.Sprintf("%s moves most: %s.", name, speed))
		case rivals[stats.NotEnough] > 0:
			out, enough = append(out, fmt.Sprintf("Not enough data yet to say which %s is fastest: %s leads, %s, and %s may be as fast.", what, name, speed, unit.Count(rivals[stats.NotEnough], "other"))), false
		case rivals[stats.Equal] > 0:
			out = append(out, fmt.Sprintf("%s is fastest: %s; %s within %s of that.", name, speed, unit.Count(rivals[stats.Equal], "other"), stats.MarginWords))
		default:
			out = append(out, fmt.Sprintf("%s is fastest: %s.", name, speed))
		}
	}
	return out, enough
}

// rivals counts the other methods of a direction, by the best one's verdict against them.
func rivals(best compare.MethodResult, all []compare.MethodResult) map[stats.Verdict]int {
	count := map[stats.Verdict]int{}
	for _, r := range all {
		if r.Direction == best.Direction && r.Path == best.Path && !r.Method.Same(best.Method) {
			count[best.Against(r)]++
		}
	}
	return count
}

// measuredMethods names the programs, the path and the machine.
func measuredMethods(results []compare.MethodResult, f *record.File) Remark {
	e := f.Environment
	cipher := ""
	if names := ciphersOf(results); len(names) == 1 {
		cipher = names[0]
	}
	path := sharedPath(results)
	if path != "" {
		path = "a path of" + path
	}
	return Measured(f.Campaign.Target, e.Client, e.Server, cipher, path, processors(f.Campaign, e))
}

// methodChart draws the speed of each method.
func methodChart(measured []compare.MethodResult, what string) Chart {
	c := Chart{
		Name: "methods", Table: "methods", Shape: Bars, Unit: "MB/s", Series: []string{"throughput"}, Rising: true,
		Title: "How fast each " + what + " is", Note: "More is better. The lines are 95 % intervals, or ranges where there are fewer than 6 rounds.",
	}
	for _, r := range measured {
		c.Items = append(c.Items, Item{Label: MethodAndCipher(r.Method), Suite: r.Suite, Points: []Point{PointOf(&r.Rate, 1e6)}})
	}
	return c
}

const howMethods = "MB/s and CPU exclude start-up time, measured with one-byte transfers (start); medians with their 95 % interval, or their range where there are fewer than 6 rounds."

// paired reports whether the methods are pairs of implementations.
func paired(results []compare.MethodResult) bool {
	return slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.Server != "" })
}

// methodName returns the name of a method.
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
	return clean(name)
}

// MethodLabel returns the name of a method in one line.
func MethodLabel(m record.Method) string {
	if m.Server != "" {
		return clean(m.Client+" to "+m.Server) + pathText(m.Path)
	}
	return strings.TrimSpace(methodName(m)+" "+string(m.Direction)) + pathText(m.Path)
}

// MethodAndCipher adds its cipher, if that is known.
func MethodAndCipher(m record.Method) string {
	return strings.Join(text.NonEmpty(MethodLabel(m), Short(m.Suite.Cipher)), ", ")
}

// ciphersOf returns the ciphers of methods, by their short names.
func ciphersOf(results []compare.MethodResult) (names []string) {
	for _, r := range results {
		names = appendNew(names, Short(r.Suite.Cipher))
	}
	return names
}

// unmeasured lists the methods without figures, with the reasons, and other failures. For each
// reason up to named methods are named.
func unmeasured(results []compare.MethodResult, f *record.File, named int) []string {
	var lines []string
	label := MethodLabel
	if len(ciphersOf(results)) > 1 {
		label = MethodAndCipher
	}
	var reasons []string
	without := map[string][]string{} // by reason
	for _, r := range results {
		switch {
		case r.Why != "":
			reasons = appendNew(reasons, r.Why)
			without[r.Why] = append(without[r.Why], label(r.Method))
		case len(r.Failed) > 0:
			lines = append(lines, fmt.Sprintf("%s failed %s: %s", label(r.Method), unit.Count(len(r.Failed), "time"), clean(r.Failed[len(r.Failed)-1])))
		case r.Rate.N == 0 && !r.Ran():
			lines = append(lines, fmt.Sprintf("no figure yet: %s: the run ended before its turn", label(r.Method)))
		case r.Rate.N == 0:
			more := "--size"
			if r.Files > 0 {
				more = "--files"
			}
			lines = append(lines, fmt.Sprintf("no figure: %s: %s is too small to measure; use a larger %s", label(r.Method), r.SizeBytes, more))
		}
	}
	for _, why := range reasons {
		names := without[why]
		if more := len(names) - named; more > 0 {
			names = append(names[:named:named], unit.Count(more, "other"))
		}
		lines = append(lines, fmt.Sprintf("not measured: %s: %s", strings.Join(names, "; "), clean(why)))
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
	for _, d := range doubts(nil, f.Findings) {
		lines = append(lines, "note: "+d.String())
	}
	return lines
}

// controlLines says how fast files are read by themselves, and how long comparing them took.
func controlLines(f *record.File) (lines []string) {
	rates := map[string]float64{}
	for _, m := range f.Measurements {
		rates[m.Name] = m.Value
	}
	switch cached, disk := rates[record.FileCached], rates[record.FileDisk]; {
	case disk > 0:
		lines = append(lines, fmt.Sprintf("Files by themselves are read at %s from memory (page cache) and %s from the disk.", unit.Throughput(cached), unit.Throughput(disk)))
	case cached > 0:
		lines = append(lines, fmt.Sprintf("Files are in memory, where they are read at %s.", unit.Throughput(cached)))
	}
	var took time.Duration
	files := 0
	for _, run := range f.Readings {
		if took += run.VerifiedNS; run.VerifiedNS > 0 {
			files++
		}
	}
	if files > 0 {
		lines = append(lines, fmt.Sprintf("Copies were verified by SHA-256 outside the measured time: %s s for %s.", unit.Digits(took.Seconds()), unit.Count(files, "run")))
	}
	return lines
}

// standings returns a line for each algorithm of a suite that should not be used.
func standings(s alg.Suite) []string {
	var lines []string
	for _, kind := range alg.Measured {
		if name := s.Name(kind); name != "" {
			if a := algorithm(kind, name); !a.Status.Sound() {
				lines = append(lines, fmt.Sprintf("%s is %s: %s", Short(name), Standing(a.Status), a.Reason))
			}
		}
	}
	return lines
}

// methodTable has a row for each method, or pair of programs.
func methodTable(results []compare.MethodResult) Table {
	pairs, several := paired(results), len(ciphersOf(results)) > 1
	far := slices.ContainsFunc(results, func(r compare.MethodResult) bool { return r.RTT > 0 })
	t := Table{Name: "methods", Title: "Transfer methods", Note: howMethods, Columns: []Column{
		{Key: "mode", Head: "method", Fit: text.Cut, Minor: pairs}, {Key: "direction", Head: "direction", Terse: " ", Minor: pairs},
		{Key: "client", Head: "client", Fit: text.Cut, Minor: !pairs}, {Key: "server", Head: "server", Fit: text.Cut, Minor: !pairs},
		{Key: "cipher", Head: "cipher", Kind: Name, Of: alg.Cipher, Fit: text.Cut, Minor: !pairs && !several}, {Key: "mac", Head: "MAC", Minor: true},
		{Key: "path_rtt_ms", Head: "round trip, ms", Terse: "trip|ms", Kind: Count, Minor: !far},
		{Key: "throughput_bytes_per_s", Head: "throughput", Terse: "MB/s", Unit: "MB/s", Scale: 1e6, Kind: Quantity, Bare: pairs},
		{Key: "client_ns_per_byte", Head: "client", Terse: "client|s/GB", Unit: "CPU s/GB", Scale: 1, Kind: Quantity, Bare: true},
		{Key: "server_ns_per_byte", Head: "server", Terse: "server|s/GB", Unit: "CPU s/GB", Scale: 1, Kind: Quantity, Bare: true},
		{Key: "start_s", Head: "start", Terse: "s to|start", Unit: "s", Scale: 1, Kind: Quantity, Bare: true, Minor: pairs},
		{Key: "login_s", Head: "login", Terse: "login|s", Unit: "s", Scale: 1, Kind: Quantity, Bare: true, Minor: !pairs},
	}}
	for _, r := range results {
		cells := []Cell{{Text: methodName(r.Method)}, {Text: string(r.Direction)}, {Text: clean(r.Client)}, {Text: clean(r.Server)}, {Text: clean(r.Suite.Cipher)}, {Text: clean(r.Suite.MAC)}}
		cells = append(cells, Cell{Text: strconv.FormatFloat(r.RTT.Seconds()*1e3, 'f', -1, 64)})
		for _, q := range []stats.Interval{r.Rate, positiveOnly(r.ClientCost), positiveOnly(r.ServerCost), r.Start, r.Login} {
			cells = append(cells, Cell{Quantity: q.OrNil()})
		}
		t.Rows = append(t.Rows, Row{Suite: safe(r.Suite), Cells: cells})
	}
	return t
}

// positiveOnly drops an interval below the noise: then the difference of a long run is nothing.
func positiveOnly(i stats.Interval) stats.Interval {
	if i.Value <= 0 {
		return stats.Interval{}
	}
	return i
}

// limitLines names the limit of each examined transfer, and the remedy.
func limitLines(limits []record.Limit) []string {
	var lines []string
	for _, l := range limits {
		method := record.Method{Mode: l.Mode, Direction: l.Direction, Compression: l.Evidence.Compressed, Path: l.Path}
		lines = append(lines, clean(fmt.Sprintf("%s: %s", MethodLabel(method), cmp.Or(l.Sentence, l.What))))
		if l.Help != "" {
			lines = append(lines, clean("what helps: "+l.Help))
		}
	}
	return lines
}
