package findings

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// Explanation is what applies to a host, which line says so, and which engine follows from it.
type Explanation struct {
	resolved *conf.Resolved
	decision conf.Decision
	asked    []conf.Gap // what ssh -G was asked about
}

// Of finds out about a host. config is that of router.
func Explain(ctx context.Context, router *route.Router, config *route.Configuration, h host.Host) (*Explanation, error) {
	query := h.Asked()
	first, err := config.Resolve(ctx, query)
	if err != nil {
		return nil, err
	}
	resolved, err := config.Asker.Explained(ctx, query)
	if err != nil {
		return nil, err
	}
	e := &Explanation{resolved: resolved, asked: append(first.Gaps, resolved.Gaps...)}
	found, err := router.Route(ctx, h) // as run decides
	switch {
	case route.IsJumpsError(err): // which lines make the circle is what is asked for
		v, _ := resolved.Get(conf.ProxyJump)
		e.decision.Reasons = []conf.Reason{{Keyword: conf.ProxyJump, Text: err.Error(), Origin: v.Origin}}
	case err != nil:
		return nil, err
	default:
		e.decision = found.Decision
	}
	return e, nil
}

// Text prints a summary and a table of the settings, in so many columns; 0: in any number.
func (e *Explanation) Text(w io.Writer, all bool, width int) error {
	summary := text.Table{Columns: make([]text.Column, 2), Rows: e.summary()}
	t := text.Table{Columns: []text.Column{{Head: "SETTING"}, {Head: "VALUE", Fit: text.Above}, {Head: "FROM"}}}
	hidden := 0
	for k, v := range e.resolved.Settings() {
		if v.Origin.Source == conf.FromDefault && !all {
			hidden++
			continue
		}
		t.Rows = append(t.Rows, setting(k, v)...)
	}
	out := summary.Text(0) + "\n" + t.Text(max(0, width-1))
	if hidden > 0 {
		out += fmt.Sprintf("\n%d further settings have their default value; --all shows them.\n", hidden)
	}
	_, err := io.WriteString(w, out)
	return err
}

// engine is who can connect; "none" where nobody may.
func (e *Explanation) engine() string { return cmp.Or(string(e.decision.Engine), "none") }

// summary is how the host is reached, in two columns.
func (e *Explanation) summary() (rows [][]string) {
	add := func(name, value string) { rows = append(rows, []string{name, termsafe.Line(value)}) }
	r := e.resolved
	add("host", r.Name)
	add("connects to", host.Endpoint{Name: r.HostName(), User: r.User(), Port: uint16(r.Port())}.String())
	for _, hop := range r.ProxyJump() {
		add("through", hop.String())
	}
	add("engine", e.engine())
	for _, reason := range e.decision.Reasons {
		add("because of", reason.String())
	}
	for _, note := range e.decision.Notes {
		add("note", note.String())
	}
	for _, gap := range e.asked {
		add("asked ssh -G", gap.String())
	}
	return rows
}

// valueWidth is from where on long lists go on in the next line.
const valueWidth = 60

// setting is a row, or as many as a long list takes. Tabs are shown as such.
func setting(k conf.Keyword, v conf.Value) (rows [][]string) {
	row := []string{k.String(), "", termsafe.Line(v.Origin.String())}
	words := strings.ReplaceAll(termsafe.Line(strings.Join(v.Args, " ")), "\t", `\t`)
	for _, row[1] = range text.Wrap("", words, valueWidth) {
		rows = append(rows, row)
		row = make([]string, 3)
	}
	return rows
}
