package findings

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// loginSchema names the layout of the JSON form.
const loginSchema = "sshpace.login/1"

// Login is the report of measured logins.
type Login struct {
	Schema   string         `json:"schema"`
	Target   string         `json:"target"`
	Engine   string         `json:"engine"` // the client: ssh, or native, the engine of run
	Client   string         `json:"client"`
	Server   string         `json:"server"`
	Results  []login.Result `json:"results"`            // the plain login first
	Compared string         `json:"compared,omitempty"` // conditions of all logins but the plain one
	// Beside holds the figures of simultaneous logins, which cost more: Results do not contain
	// them. nil: all were alone.
	Beside *login.Beside `json:"beside_others,omitempty"`
	// RoundTrips of a plain login; 0 where they were not counted.
	RoundTrips int                `json:"round_trips,omitempty"`
	Predicted  []login.Prediction `json:"predicted,omitempty"`
	// Kept is the time of a session over the user's own master, relative to a plain login.
	Kept *stats.Interval `json:"kept_ratio,omitempty"`
}

// LoginOf returns the report of a record file. It must hold logins.
func LoginOf(f *record.File) *Login {
	r := &Login{
		Schema: loginSchema, Target: f.Campaign.Target, Engine: "ssh", Client: f.Environment.Client, Server: f.Environment.Server,
		RoundTrips: f.Logins()[0].RoundTrips,
	}
	var beside login.Beside
	if r.Results, beside = login.Results(f); beside.Client.N > 0 {
		r.Beside = &beside
	}
	if f.Campaign.Engine == record.EngineNative {
		r.Engine = "native"
	}
	if kinds := f.Logins(); len(kinds) > 1 {
		r.Compared = kinds[1].Conditions
	}
	if r.RoundTrips > 0 && r.Results[0].Wall.N > 0 {
		r.Predicted = r.Results[0].Predict(r.RoundTrips)
	}
	if kept := r.kept(); kept != nil {
		r.Kept = kept.Wall.Estimate().Over(r.Results[0].Wall.Estimate()).OrNil()
	}
	return r
}

// kept returns the result of sessions over the user's own master; nil without them.
func (r *Login) kept() *login.Result {
	i := slices.IndexFunc(r.Results, func(x login.Result) bool { return x.Level == login.KeptLevel && x.Wall.N > 0 })
	if i < 0 || r.Results[0].Wall.N == 0 {
		return nil
	}
	return &r.Results[i]
}

// Kinds returns the cost of each kind of login, for a comparison.
func (r *Login) Kinds() (kinds []compare.LoginKind) {
	for _, k := range r.Results {
		kinds = append(kinds, kindOf(k))
	}
	return kinds
}

func kindOf(r login.Result) compare.LoginKind {
	return compare.LoginKind{Factor: r.Factor, Level: r.Level, Client: r.ClientCPU, Server: r.ServerCPU, Wall: r.Wall}
}

// JSON writes the report.
func (r *Login) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// step is a phase, its name for people and its content.
type step struct {
	phase      login.Phase
	name, what string
}

// steps lists the phases of a login of the real ssh, in order.
var steps = []step{
	{record.PhaseStart, "start", "ssh starts, reads its configuration, looks the name up"},
	{record.PhaseTCP, "connect", "connect, read the key files"},
	{record.PhaseVersion, "versions", "exchange version lines"},
	{record.PhaseKexInit, "algorithms", "exchange lists of algorithms"},
	{record.PhaseKex, "kex", "key exchange"},
	{record.PhaseHostKey, "host key", "look the host key up"},
	{record.PhaseNewKeys, "new keys", "switch to the new keys"},
	{record.PhaseService, "auth service", "ask for the login service"},
	{record.PhaseAuthNone, "auth methods", "ask which methods there are"},
	{record.PhaseQuery, "try keys", "offer keys"},
	{record.PhaseSign, "sign", "sign with the key, log in"},
	{record.PhaseChannel, "session", "open a session"},
	{record.PhaseExec, "request", "ask for the command"},
	{record.PhaseCommand, "command", "run it"},
	{record.PhaseClose, "end", "close the connection"},
}

// steps returns the phases of the engine's logins, in order.
func (r *Login) steps() []step {
	if r.Engine != "native" {
		return steps
	}
	own := slices.Clone(steps)
	own[0].what = "sshpace starts, reads ssh_config, looks the name up"
	return own
}

// brief returns the report for a terminal: the time of a login and its parts, or, if other kinds
// were measured, their times, as much as fits the screen; with all, everything.
func (r *Login) brief(d *document.Document, all bool, commands document.Commands) []document.Table {
	lead, phases := document.Table{Lines: r.lead(all)}, d.Tables[1]
	phases.Title = ""
	last := document.RemarkLines([]document.Remark{
		document.Brackets(), document.Measured(r.Target, r.Client, r.Server),
	}, 0)
	var doubts []string
	for _, doubt := range d.Doubts {
		doubts = append(doubts, doubt.Text)
	}
	if all {
		phases.Lines = r.predicted()
		out := []document.Table{lead, phases}
		for _, group := range grouped(r.Results[1:]) {
			t := r.loginTable(group)
			t.Title, t.Columns[0].Minor, t.Columns[1].Terse = "", true, group[0].Factor
			out = append(out, t)
		}
		lines := slices.Concat(doubts, r.compared(), r.precision(), d.Method)
		return document.Clean(append(out, document.Table{Lines: lines}, document.Table{Lines: last}))
	}
	if len(r.Results) == 1 {
		phases = r.longPhases(phases)
		phases.Lines = r.predicted()
		return document.Clean([]document.Table{lead, phases, {Lines: document.Apart(doubts, last)}})
	}
	kinds := r.loginTable(r.shown()[1:])
	kinds.Title, kinds.Columns[0].Minor = "", true
	lead.Lines = append(lead.Lines, r.predicted()...)
	return document.Clean(document.Screenful([]document.Table{lead, kinds}, doubts, document.SavedLines+1, commands.All(), last))
}

// longPhases merges the phases that make no difference to a login into one row.
func (r *Login) longPhases(t document.Table) document.Table {
	total, rest := 0.0, 0.0
	for _, row := range t.Rows {
		total += row.Cells[2].Quantity.Value
	}
	rows := slices.DeleteFunc(slices.Clone(t.Rows), func(row document.Row) bool {
		v := row.Cells[2].Quantity.Value
		if v >= stats.Margin*total {
			return false
		}
		rest += v
		return true
	})
	if n := len(t.Rows) - len(rows); n > 0 {
		rows = append(rows, document.Row{Cells: []document.Cell{{Text: "other"}, {Text: fmt.Sprintf("%d short phases", n)}, {Quantity: stats.Exactly(rest)}, {}}})
	}
	t.Rows = rows
	return t
}

// predicted says how long the plain login takes over a distance: for the distances of the table
// between a local network and the other side of the world.
func (r *Login) predicted() []string {
	if len(r.Predicted) == 0 {
		return nil
	}
	var words []string
	for _, p := range r.Predicted[1 : len(r.Predicted)-1] {
		words = append(words, fmt.Sprintf("%g ms: %s", p.RTT.Seconds()*1e3, unit.Milliseconds(p.NS)))
	}
	return []string{"Predicted with a round trip of " + strings.Join(words, ", ")}
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
			alone := slices.ContainsFunc(group, func(x login.Result) bool { return x.ServerCPU == nil })
			slices.SortStableFunc(group, func(x, y login.Result) int {
				return cmp.Compare(kindOf(x).CPU(alone).Value, kindOf(y).CPU(alone).Value)
			})
		}
	}
	return groups
}

// quantum says whether a login with its own key exchange is safe against quantum computers.
func quantum(c login.Result) string {
	if c.Factor != login.KexFactor && c.Factor != login.FullFactor {
		return ""
	}
	name, _, _ := strings.Cut(c.Level, " ")
	if a, known := alg.Lookup(alg.Kex, name); known && a.PostQuantum {
		return "yes"
	}
	return "no"
}

// precision says how narrow the intervals of CPU time are, where there are any.
func (r *Login) precision() []string {
	var halves []float64
	for _, c := range r.Results {
		for _, f := range []*stats.Interval{&c.ClientCPU, c.ServerCPU} {
			if f != nil && f.N > 1 && f.Value > 0 {
				halves = append(halves, 100*(f.Hi-f.Lo)/2/f.Value)
			}
		}
	}
	if len(halves) == 0 {
		return nil
	}
	text := fmt.Sprintf("CPU times are known within %.1f %%.", slices.Max(halves))
	if r.Beside != nil {
		text += fmt.Sprintf(" Most logins ran at the same time as others, which multiplied CPU times by %s (client) and %s (server); the figures are corrected for it.",
			r.Beside.Client.Times(), r.Beside.Server.Times())
	}
	return []string{text}
}
