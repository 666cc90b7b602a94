package findings

import (
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
	query := route.Hop(h)
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

// Text prints a summary and a table of the settings, at most width columns wide where that can be.
func (e *Explanation) Text(w io.Writer, width int, all bool) error {
	t := text.Table{Columns: []text.Column{{}, {Fit: text.Above}, {}}, Rows: [][]string{{"SETTING", "VALUE", "FROM"}}}
	room, hidden := e.valueRoom(width, all), 0
	for k, v := range e.resolved.Settings() {
		if v.Origin.Source == conf.FromDefault && !all {
			hidden++
			continue
		}
		t.Rows = append(t.Rows, setting(k, v, room)...)
	}
	summary := text.Table{Columns: make([]text.Column, 2), Rows: e.summary(width)}
	out := summary.Text(0) + "\n" + t.Text(width)
	if hidden > 0 {
		out += fmt.Sprintf("\n%d further settings have their default value; --all shows them.\n", hidden)
	}
	_, err := io.WriteString(w, out)
	return err
}

// summary is how the host is reached, in two columns.
func (e *Explanation) summary(width int) (rows [][]string) {
	add := func(name, value string) {
		for _, line := range text.Wrap("", termsafe.Line(value), max(0, width-len("asked ssh -G  "))) {
			rows = append(rows, []string{name, line})
			name = ""
		}
	}
	r := e.resolved
	add("host", r.Name)
	add("connects to", host.Endpoint{Name: r.HostName(), User: r.User(), Port: uint16(r.Port())}.String())
	for _, hop := range r.ProxyJump() {
		add("through", hop.String())
	}
	add("engine", e.decision.Engine.String())
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

// From where on long lists go on in the next line: where there is room for it, and at least.
const (
	valueWidth = 60
	leastValue = 24
)

// valueRoom is how wide values are between names and origins, so that all fits.
func (e *Explanation) valueRoom(width int, all bool) int {
	if width == 0 {
		return valueWidth
	}
	name, origin := 0, 0
	for k, v := range e.resolved.Settings() {
		if all || v.Origin.Source != conf.FromDefault {
			name, origin = max(name, text.Width(k.String())), max(origin, text.Width(termsafe.Line(v.Origin.String())))
		}
	}
	return max(leastValue, min(valueWidth, width-name-origin-2*len("  ")))
}

// setting is a row, or as many as a long list takes. Tabs are shown as such.
func setting(k conf.Keyword, v conf.Value, room int) (rows [][]string) {
	row := []string{k.String(), "", termsafe.Line(v.Origin.String())}
	words := strings.ReplaceAll(termsafe.Line(strings.Join(v.Args, " ")), "\t", `\t`)
	for _, row[1] = range text.Wrap("", words, room) {
		rows = append(rows, row)
		row = make([]string, 3)
	}
	return rows
}
