package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

const howLogins = "Wall times are medians and CPU times averages without outliers, each with its 95 % interval; CPU times are corrected for slowdowns of the machine during some logins in a row (doc/method.md, \"Logins\")."

// Document returns the report for every format but JSON; all is for a terminal.
func (r *Login) Document(f *record.File, all bool, commands document.Commands) *document.Document {
	d := &document.Document{
		Title: "The cost of a login", Lead: append(r.lead(true), r.compared()...), Method: []string{howLogins},
		Environment: document.Environment(f), Algorithms: r.algorithms(),
		Tables: []document.Table{r.loginTable(r.shown()), r.phaseTable()},
		Charts: []document.Chart{r.phaseChart(), r.cpuChart(), r.wallChart()},
	}
	if len(r.Predicted) > 0 {
		d.Tables = append(d.Tables, r.distanceTable())
	}
	for _, c := range r.Results {
		if c.Failure != "" {
			d.Doubts = append(d.Doubts, document.Doubt{Text: termsafe.Line(fmt.Sprintf("%s failed: %s", strings.TrimSpace(c.Factor+" "+c.Level), c.Failure))})
		}
	}
	d.Quality = []document.Fact{{Name: "precision", Value: cmp.Or(strings.Join(r.precision(), " "), "one login of each kind gives no interval of CPU times")}}
	d.Brief = r.brief(d, all, commands)
	return d
}

// lead describes the plain login in sentences; all adds a line for each stall.
func (r *Login) lead(all bool) []string {
	plain := r.Results[0]
	cpu := "client " + figure(plain.ClientCPU)
	if plain.ServerCPU != nil {
		cpu += ", server " + figure(*plain.ServerCPU)
	}
	lines := []string{
		fmt.Sprintf("A plain login takes %s; CPU time: %s.", plain.Wall.Noted(unit.InMilliseconds, " ms", fmt.Sprintf("median of %d", plain.Wall.N)), cpu),
		r.longest(),
	}
	if kept := r.kept(); kept != nil {
		lines = append(lines, fmt.Sprintf("Over the connection that is kept a session takes %s: %s of a login.", figure(kept.Wall), r.Kept.Times()))
	}
	if w := plain.Wire; w != nil {
		trips := fmt.Sprintf("%d round trips, %d bytes up, %d bytes down.", r.RoundTrips, w.Up, w.Down)
		if stalled := r.stalled(); stalled > 0 && !all {
			trips += fmt.Sprintf(" Delayed acknowledgements stall it for %s.", unit.Milliseconds(stalled))
		}
		if lines = append(lines, trips); !all {
			return lines
		}
		for _, s := range w.Stalls {
			lines = append(lines, termsafe.Line(fmt.Sprintf("Stall of %s at %s: %s.", unit.Milliseconds(s.WallNS), unit.Milliseconds(s.AtNS), s.Why)))
		}
	}
	return lines
}

// stalled returns how long the plain login stalls, in ns.
func (r *Login) stalled() (ns float64) {
	for _, s := range r.Results[0].Wire.Stalls {
		ns += float64(s.WallNS)
	}
	return ns
}

// longest names the longest phases of the plain login.
func (r *Login) longest() string {
	type part struct {
		name string
		ns   float64
	}
	var parts []part
	for _, s := range r.steps() {
		parts = append(parts, part{s.name, r.Results[0].Mean[s.phase]})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.ns, a.ns) })
	const most = 3
	var words []string
	for _, p := range parts[:most] {
		words = append(words, fmt.Sprintf("%s %s", p.name, unit.Milliseconds(p.ns)))
	}
	return "The longest phases: " + strings.Join(words, ", ") + "."
}

// compared describes the conditions of all logins but the plain one.
func (r *Login) compared() []string {
	if r.Compared == "" {
		return nil
	}
	return []string{"All other logins were made " + r.Compared + "."}
}

func figure(f stats.Interval) string { return f.Shown(unit.InMilliseconds, " ms") }

func column(key, head string) document.Column {
	return document.Column{Key: key, Head: head, Terse: strings.ReplaceAll(head, " ", "|") + "|ms", Unit: "ms", Scale: 1e6, Kind: document.Quantity}
}

func bare(c document.Column) document.Column {
	c.Bare = true
	return c
}

// suite returns the algorithms of a kind of login, for filters.
func suite(c login.Result) (s alg.Suite) {
	switch c.Factor {
	case login.KexFactor:
		s.Kex = termsafe.Line(c.Level)
	case login.HostKeyFactor:
		s.HostKey = termsafe.Line(c.Level)
	}
	return s
}

// shown returns the results in the order of tables: in groups, the plain login first.
func (r *Login) shown() (all []login.Result) {
	all = append(all, r.Results[0])
	for _, group := range grouped(r.Results[1:]) {
		all = append(all, group...)
	}
	return all
}

func (r *Login) loginTable(results []login.Result) document.Table {
	t := document.Table{Name: "logins", Title: "Logins that differ in one thing", Note: howLogins, Columns: []document.Column{
		{Key: "factor", Head: "what differs"}, {Key: "level", Head: "login", Fit: text.Above},
		column("wall_ns", "total"), bare(column("client_cpu_ns", "client CPU")), bare(column("server_cpu_ns", "server CPU")),
		{Key: "post_quantum", Head: "post-quantum", Terse: " ", Usual: []string{"no"}},
		{Key: "failure", Head: "failed", Minor: true},
	}}
	for _, c := range results {
		t.Rows = append(t.Rows, document.Row{Suite: suite(c), Cells: []document.Cell{
			{Text: c.Factor}, {Text: termsafe.Line(c.Level)},
			{Quantity: c.Wall.OrNil()}, {Quantity: c.ClientCPU.OrNil()}, {Quantity: c.ServerCPU.OrNil()}, {Text: quantum(c)}, {Text: termsafe.Line(c.Failure)},
		}})
	}
	return t
}

func (r *Login) phaseTable() document.Table {
	plain := r.Results[0]
	t := document.Table{Name: "phases", Title: "The plain login in phases", Note: "Means add up to the total; medians do not.", Columns: []document.Column{
		{Key: "phase", Head: "phase"}, {Key: "what", Head: "what happens", Fit: text.Cut}, column("mean_ns", "mean"), column("median_ns", "median"),
	}}
	for _, s := range r.steps() {
		mean, told := plain.Mean[s.phase]
		if !told {
			continue
		}
		median := plain.Phases[s.phase].Bounded()
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{
			{Text: s.name}, {Text: s.what}, {Quantity: &stats.Interval{Value: mean, Lo: mean, Hi: mean, N: median.N}}, {Quantity: median.OrNil()},
		}})
	}
	return t
}

func (r *Login) distanceTable() document.Table {
	t := document.Table{Name: "distances", Title: "Predicted over a distance", Note: fmt.Sprintf("Predicted, not measured: the plain login and %d times the round trip.", r.RoundTrips), Columns: []document.Column{
		{Key: "round_trip_ns", Head: "round trip", Unit: "ms", Scale: 1e6, Kind: document.Quantity}, column("predicted_ns", "total"),
	}}
	for _, p := range r.Predicted {
		t.Rows = append(t.Rows, document.Row{Cells: []document.Cell{{Quantity: stats.Exactly(float64(p.RTT))}, {Quantity: stats.Exactly(float64(p.NS))}}})
	}
	return t
}

// point returns a figure in ms.
func point(f *stats.Interval) document.Point { return document.PointOf(f.OrNil(), 1e6) }

func (r *Login) phaseChart() document.Chart {
	c := document.Chart{Name: "phases", Table: "phases", Title: "Where the time of a plain login goes", Note: "Means, which add up to the total.", Shape: document.Bars, Unit: "ms", Series: []string{"mean"}}
	for _, s := range r.steps() {
		if mean, told := r.Results[0].Mean[s.phase]; told {
			c.Items = append(c.Items, document.Item{Label: s.what, Points: []document.Point{document.PointOf(stats.Exactly(mean), 1e6)}})
		}
	}
	return c
}

func (r *Login) cpuChart() document.Chart {
	c := document.Chart{Name: "cpu", Table: "logins", Title: "CPU time of a login", Note: "Both sides add up.", Shape: document.Stack, Unit: "ms", Series: []string{"client", "server"}}
	r.items(&c, func(x *login.Result) []document.Point {
		return []document.Point{point(&x.ClientCPU), point(x.ServerCPU)}
	})
	if c = c.Known(); len(c.Series) == 1 {
		c.Note = "Of the " + c.Series[0] + " alone."
	}
	return c
}

func (r *Login) wallChart() document.Chart {
	c := document.Chart{Name: "wall", Table: "logins", Title: "Time of a login", Note: "Medians with their 95 % intervals.", Shape: document.Bars, Unit: "ms", Series: []string{"total"}}
	r.items(&c, func(x *login.Result) []document.Point { return []document.Point{point(&x.Wall)} })
	return c
}

// items returns the measured kinds of logins.
func (r *Login) items(c *document.Chart, points func(*login.Result) []document.Point) {
	for _, x := range r.shown() {
		if x.Wall.N > 0 {
			label := termsafe.Line(cmp.Or(x.Factor, "plain login"))
			if x.Factor != "" {
				label += ": " + termsafe.Line(x.Level)
			}
			item := document.Item{Label: label, Suite: suite(x), Points: points(&x)}
			if quantum(x) == "yes" {
				item.Color = document.ColorQuantum
			}
			c.Items = append(c.Items, item)
		}
	}
}

// algorithms returns the names in the report, with their standing.
func (r *Login) algorithms() []document.Algorithm {
	var suites []alg.Suite
	for _, c := range r.shown() {
		suites = append(suites, suite(c))
	}
	return document.Algorithms(suites)
}
