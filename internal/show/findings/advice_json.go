package findings

import (
	"io"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// schema names the layout of `advise --json`.
const adviceSchema = "sshpace.advice/1"

// JSON prints it for programs.
func (a *Advice) JSON(w io.Writer) error {
	type choice struct {
		Name   string     `json:"name"`
		Status alg.Status `json:"status"`
		Group  string     `json:"group,omitempty"`
		Reason string     `json:"reason"`
	}
	type list struct {
		Keyword string   `json:"keyword"`
		Advised []choice `json:"advised"`
		LeftOut []choice `json:"left_out,omitempty"`
	}
	type ratio struct {
		Value float64 `json:"value"`
		Lo    float64 `json:"lo"`
		Hi    float64 `json:"hi"`
	}
	type gain struct {
		Direction  record.Direction `json:"direction"`
		Throughput *ratio           `json:"throughput_ratio,omitempty"`
		Cost       *ratio           `json:"cost_ratio,omitempty"`
		Verdict    stats.Verdict    `json:"verdict"`
		Chance     float64          `json:"chance"`
	}
	ad := a.Advice
	out := struct {
		Schema   string      `json:"schema"`
		Policy   string      `json:"policy"`
		Host     string      `json:"host"`
		Strict   bool        `json:"strict"`
		Lists    []list      `json:"lists"`
		Present  alg.Suite   `json:"present"`
		Advised  alg.Suite   `json:"advised"`
		Tied     []alg.Suite `json:"tied"` // the best and what is tied with it, as in the reports
		Gains    []gain      `json:"gains"`
		Matters  bool        `json:"matters"`
		Insecure []choice    `json:"insecure_never_advised,omitempty"`
		Client   string      `json:"ssh_config"`
		Server   string      `json:"sshd_config"`
		Notes    []string    `json:"notes,omitempty"`
	}{
		Schema: adviceSchema, Policy: ad.Policy, Host: a.Pattern, Strict: ad.Strict, Present: ad.Present, Advised: ad.Advised, Tied: []alg.Suite{}, Gains: []gain{},
		Matters: ad.Choice.Matters(), Client: ad.ClientConfig(a.Pattern), Server: ad.ServerConfig(), Notes: ad.Notes,
	}
	for _, o := range ad.Choice.Use() {
		out.Tied = append(out.Tied, o.Suite)
	}
	choices := func(kind alg.Kind, from []advise.Listed) []choice {
		var list []choice
		for _, c := range from {
			facts, _ := alg.Lookup(kind, c.Name)
			list = append(list, choice{c.Name, facts.Status, c.Group, c.Reason})
		}
		return list
	}
	for _, l := range ad.Lists {
		out.Lists = append(out.Lists, list{l.Keyword, choices(l.Kind, l.Choices), choices(l.Kind, l.Dropped)})
	}
	quotient := func(q *rank.Quantity) *ratio {
		if q == nil {
			return nil
		}
		return &ratio{q.Value, q.Lo, q.Hi}
	}
	for _, g := range ad.Choice.Gains {
		out.Gains = append(out.Gains, gain{g.From.Direction, quotient(g.Throughput), quotient(g.Cost), g.Verdict, g.Chance})
	}
	if a.Insecure {
		for _, c := range ad.Insecure() {
			out.Insecure = append(out.Insecure, choice{Name: c.Name, Group: c.Group, Reason: c.Reason})
		}
	}
	return termsafe.WriteJSON(w, out, " ")
}
