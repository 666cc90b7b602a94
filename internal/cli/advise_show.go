package cli

import (
	"fmt"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/verdict/advise"
	"sshpace/internal/verdict/rank"
)

// show prints the advice: lines that can be pasted, and comments.
func (a *adviser) show() error {
	if a.flags.json {
		return a.showJSON()
	}
	out := a.sys.Stdout
	fmt.Fprint(out, a.advice.ClientConfig(a.pattern()))
	fmt.Fprintf(out, "\n%s\n", a.advice.ServerConfig())
	fate := "stays enabled, --strict removes it"
	if a.flags.strict {
		fate = "left out"
	}
	for _, line := range a.advice.LeftOut() {
		fmt.Fprintf(out, "# %s: %s\n", fate, termsafe.Line(line))
	}
	for _, line := range a.verdict() {
		fmt.Fprintf(out, "# %s\n", termsafe.Line(line))
	}
	if a.sshd.Path == "" {
		fmt.Fprintln(out, "# the lines for sshd_config were not checked: check them on the server with sshd -t")
	}
	if !a.flags.insecure {
		return nil
	}
	list := a.advice.Insecure()
	for _, c := range list {
		fmt.Fprintf(out, "# INSECURE, never advised: %s: %s\n", termsafe.Line(c.Name), termsafe.Line(c.Reason))
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "# nothing insecure was measured that is faster")
	}
	return nil
}

// verdict says what the advice is worth, in the words of the reports.
func (a *adviser) verdict() []string {
	var lines []string
	for _, f := range document.AnswerOf(a.ranking, a.advice.Choice, "sshpace advise").Facts {
		if f.Name != document.Do {
			lines = append(lines, fmt.Sprintf("%-4s  %s", f.Name, f.Value))
		}
	}
	for _, note := range a.advice.Notes {
		lines = append(lines, "note: "+note)
	}
	return lines
}

// adviceSchema names the layout of `advise --json`.
const adviceSchema = "sshpace.advice/1"

func (a *adviser) showJSON() error {
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
		Tie        bool             `json:"tie"`
	}
	ad := a.advice
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
		Schema: adviceSchema, Policy: ad.Policy, Host: a.pattern(), Strict: ad.Strict, Present: ad.Present, Advised: ad.Advised, Tied: []alg.Suite{}, Gains: []gain{},
		Matters: ad.Choice.Matters(), Client: ad.ClientConfig(a.pattern()), Server: ad.ServerConfig(), Notes: ad.Notes,
	}
	for _, o := range ad.Choice.Use() {
		out.Tied = append(out.Tied, o.Suite)
	}
	choices := func(kind alg.Kind, from []advise.Choice) []choice {
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
		out.Gains = append(out.Gains, gain{g.From.Direction, quotient(g.Throughput), quotient(g.Cost), g.Tie})
	}
	if a.flags.insecure {
		for _, c := range ad.Insecure() {
			out.Insecure = append(out.Insecure, choice{Name: c.Name, Group: c.Group, Reason: c.Reason})
		}
	}
	return termsafe.WriteJSON(a.sys.Stdout, out, " ")
}
