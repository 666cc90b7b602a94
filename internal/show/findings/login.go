// login.go shows what a login costs, for people and for programs.

package findings

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
)

// schema names the layout of the JSON form.
const loginSchema = "sshpace.handshake/1"

// Report is what was measured.
type Login struct {
	Schema   string         `json:"schema"`
	Target   string         `json:"target"`
	Engine   string         `json:"engine"` // whose logins: ssh's, or native, those of run
	Client   string         `json:"client"`
	Server   string         `json:"server"`
	Results  []login.Result `json:"results"`            // the plain login first
	Compared string         `json:"compared,omitempty"` // how the logins behind the plain one are made
	// Beside others logins cost more: Results are free of it. nil: all were alone.
	Beside *login.Beside `json:"beside_others,omitempty"`
	// RoundTrips of a plain login; 0 where they were not counted.
	RoundTrips int                `json:"round_trips,omitempty"`
	Predicted  []login.Prediction `json:"predicted,omitempty"`
}

// Of is the report of a record file. It must hold logins.
func LoginOf(f *record.File) *Login {
	r := &Login{
		Schema: loginSchema, Target: f.Campaign.Target, Engine: "ssh", Client: f.Environment.Client, Server: f.Environment.Server,
		RoundTrips: f.LoginKinds[0].RoundTrips,
	}
	var beside login.Beside
	if r.Results, beside = login.Results(f); beside.Client.N > 0 {
		r.Beside = &beside
	}
	if f.Campaign.Engine == record.EngineNative {
		r.Engine = "native"
	}
	if len(f.LoginKinds) > 1 {
		r.Compared = f.LoginKinds[1].Conditions
	}
	if r.RoundTrips > 0 && r.Results[0].Wall.N > 0 {
		r.Predicted = r.Results[0].Predict(r.RoundTrips)
	}
	return r
}

// JSON writes the report.
func (r *Login) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// step is a phase and what happens in it.
type step struct {
	phase login.Phase
	what  string
}

// steps of a login of the real ssh, in order.
var steps = []step{
	{login.Start, "ssh starts, reads its configuration, looks the name up"},
	{login.TCP, "connect, read the keys"},
	{login.Version, "version lines"},
	{login.KexInit, "lists of algorithms"},
	{login.Kex, "key exchange"},
	{login.HostKey, "look the host key up"},
	{login.NewKeys, "new keys"},
	{login.Service, "ask for the login service"},
	{login.AuthNone, "ask for the methods"},
	{login.Query, "offer keys"},
	{login.Sign, "sign, be let in"},
	{login.Channel, "open a session"},
	{login.Exec, "ask for the command"},
	{login.Command, "run it"},
	{login.Close, "end"},
}

// steps are those of the engine's logins, in order.
func (r *Login) steps() []step {
	if r.Engine != "native" {
		return steps
	}
	own := slices.Clone(steps)
	own[0].what = "sshpace starts, reads ssh_config, looks the name up"
	return own
}

// Text writes the report for people.
func (r *Login) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString("LOGIN  ")
	folded(&b, fmt.Sprintf("%s: %s to %s", r.Target, r.Client, r.Server))
	b.WriteString("\n")
	r.phases(&b)
	r.wire(&b)
	r.factors(&b)
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

func (r *Login) phases(b *strings.Builder) {
	plain := r.Results[0]
	fmt.Fprintf(b, "%-9s %9s  %s\n", "phase", "mean ms", "what happens")
	var sum float64
	for _, s := range r.steps() {
		if ns, told := plain.Mean[s.phase]; told {
			fmt.Fprintf(b, "%-9s %9s  %s\n", s.phase, ms(ns), s.what)
			sum += ns
		}
	}
	fmt.Fprintf(b, "%-9s %9s  median %s, %s\n", "whole", ms(sum), figure(plain.Wall), unit.Count(plain.Wall.N, "login"))
	fmt.Fprintf(b, "%-9s %9s  client %s", "CPU", "", figure(plain.ClientCPU))
	if plain.ServerCPU != nil {
		fmt.Fprintf(b, ", server %s", figure(*plain.ServerCPU))
	}
	b.WriteString("\n")
}

func (r *Login) wire(b *strings.Builder) {
	wire := r.Results[0].Wire
	if wire == nil {
		return
	}
	fmt.Fprintf(b, "\n%d round trips, %d bytes up, %d bytes down\n", r.RoundTrips, wire.Up, wire.Down)
	for _, s := range wire.Stalls {
		folded(b, fmt.Sprintf("stall of %s ms at %s ms: %s", ms(float64(s.NS)), ms(float64(s.At)), s.Why))
	}
	for i, p := range r.Predicted {
		what := ""
		if i == 0 {
			what = "predicted"
		}
		fmt.Fprintf(b, "%-9s %9s ms at a round-trip time of %g ms\n", what, ms(float64(p.NS)), p.RTT.Seconds()*1e3)
	}
}

// width is that of a terminal, and usualName what a table leaves of it to names.
const (
	width     = 80
	usualName = width - 3*13
)

// folded writes a line in as many as it takes.
func folded(b *strings.Builder, text string) {
	for i, line := range termsafe.Fold(text, width-len("LOGIN  ")) {
		if i > 0 {
			b.WriteString("  ")
		}
		b.WriteString(line + "\n")
	}
}

// factors compares: a table for each factor, in the order of the results. Key
// exchanges and keys are sorted by what they cost.
func (r *Login) factors(b *strings.Builder) {
	if r.Compared != "" {
		b.WriteString("\n")
		folded(b, "Compared "+r.Compared+":")
	}
	for _, group := range grouped(r.Results[1:]) {
		fmt.Fprintf(b, "\n%-*s %12s %12s %12s\n", usualName, "", "wall", "client CPU", "server CPU")
		fmt.Fprintf(b, "%-*s %12s %12s %12s\n", usualName, group[0].Factor, "ms", "ms", "ms")
		for _, c := range group {
			if c.Wall.N > 0 {
				server := "-"
				if c.ServerCPU != nil {
					server = figure(*c.ServerCPU)
				}
				name := c.Level + quantum(c)
				if len(name) > usualName { // three algorithms: their figures are in the next line
					b.WriteString(name + "\n")
					name = ""
				}
				fmt.Fprintf(b, "%-*s %12s %12s %12s\n", usualName, name, figure(c.Wall), figure(c.ClientCPU), server)
			}
			if c.Failure != "" {
				folded(b, c.Level+" failed: "+c.Failure)
			}
		}
	}
	if text := r.precision(); text != "" {
		b.WriteString("\n")
		folded(b, text)
	}
}

func grouped(results []login.Result) (groups [][]login.Result) {
	at := map[string]int{}
	for _, c := range results {
		i, known := at[c.Factor]
		if !known {
			i = len(groups)
			at[c.Factor] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	for _, group := range groups {
		switch group[0].Factor {
		case login.KexFactor, login.HostKeyFactor, login.UserKeyFactor, login.FullFactor:
			slices.SortStableFunc(group, func(x, y login.Result) int { return cmp.Compare(cost(x), cost(y)) })
		}
	}
	return groups
}

// cost is the CPU time of both sides.
func cost(c login.Result) float64 {
	if c.ServerCPU == nil {
		return c.ClientCPU.Value
	}
	return c.ClientCPU.Value + c.ServerCPU.Value
}

// quantum marks key exchanges that are safe against quantum computers.
func quantum(c login.Result) string {
	if name, _, _ := strings.Cut(c.Level, " "); c.Factor == login.KexFactor || c.Factor == login.FullFactor {
		if a, known := alg.Lookup(alg.Kex, name); known && a.PostQuantum {
			return " (PQ)"
		}
	}
	return ""
}

// precision says how narrow the intervals of CPU time are; "" where there are none.
func (r *Login) precision() string {
	var halves []float64
	for _, c := range r.Results {
		for _, f := range []*login.Figure{&c.ClientCPU, c.ServerCPU} {
			if f != nil && f.N > 1 && f.Value > 0 {
				halves = append(halves, 100*(f.Hi-f.Lo)/2/f.Value)
			}
		}
	}
	if len(halves) == 0 {
		return ""
	}
	slices.Sort(halves)
	text := fmt.Sprintf("all within +-%.1f %%", halves[len(halves)-1])
	if len(r.Results) > 1 {
		text = fmt.Sprintf("half of them within +-%.1f %%, ", halves[len(halves)/2]) + text
	}
	text = "95 % intervals of CPU times: " + text
	if r.Beside != nil {
		text += fmt.Sprintf(". Most logins were carried out beside others, where CPU times are those of logins alone times %s (client) and %s (server): that is taken out",
			times(r.Beside.Client), times(r.Beside.Server))
	}
	return text
}

// times is a ratio with half of its interval.
func times(f login.Figure) string { return fmt.Sprintf("%.2f +-%.2f", f.Value, (f.Hi-f.Lo)/2) }

func ms(ns float64) string { return fmt.Sprintf("%.1f", ns/float64(time.Millisecond)) }

// figureWidth is that of a figure's column.
const figureWidth = 12

// figure is a value with half of its interval.
func figure(f login.Figure) string {
	if f.N < 2 {
		return ms(f.Value)
	}
	half := (f.Hi - f.Lo) / 2
	if text := fmt.Sprintf("%s +-%s", ms(f.Value), ms(half)); len(text) <= figureWidth {
		return text
	}
	return fmt.Sprintf("%.0f +-%.0f", f.Value/1e6, half/1e6)
}
