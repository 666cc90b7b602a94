// Package explanation shows how a host is reached, and why so.
package explanation

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshconf"
)

// Explanation is what applies to a host, which line says so, and which engine follows from it.
type Explanation struct {
	resolved *sshconf.Resolved
	decision sshconf.Decision
	asked    []sshconf.Gap // what ssh -G was asked about
}

// Of finds out about a host. config is that of router.
func Of(ctx context.Context, router *route.Router, config *route.Configuration, h host.Host) (*Explanation, error) {
	query := route.Query(h)
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
		v, _ := resolved.Get(sshconf.ProxyJump)
		e.decision.Reasons = []sshconf.Reason{{Keyword: sshconf.ProxyJump, Text: err.Error(), Origin: v.Origin}}
	case err != nil:
		return nil, err
	default:
		e.decision = found.Decision
	}
	return e, nil
}

// Text prints a summary and a table of the settings.
func (e *Explanation) Text(w io.Writer, all bool) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	e.summary(out)
	fmt.Fprintf(out, "\nSETTING\tVALUE\tFROM\n")
	hidden := 0
	for k, v := range e.resolved.Settings() {
		if v.Origin.Source == sshconf.FromDefault && !all {
			hidden++
			continue
		}
		writeSetting(out, k, v)
	}
	if hidden > 0 {
		fmt.Fprintf(out, "\n%d further settings have their default value; --all shows them.\n", hidden)
	}
	return out.Flush()
}

func (e *Explanation) summary(w io.Writer) {
	r := e.resolved
	fmt.Fprintf(w, "host\t%s\n", termsafe.Line(r.Name))
	fmt.Fprintf(w, "connects to\t%s\n", termsafe.Line(host.Endpoint{Name: r.HostName(), User: r.User(), Port: uint16(r.Port())}.String()))
	for _, hop := range r.ProxyJump() {
		fmt.Fprintf(w, "through\t%s\n", termsafe.Line(hop.String()))
	}
	fmt.Fprintf(w, "engine\t%s\n", e.decision.Engine)
	for _, reason := range e.decision.Reasons {
		fmt.Fprintf(w, "because of\t%s\n", termsafe.Line(reason.String()))
	}
	for _, note := range e.decision.Notes {
		fmt.Fprintf(w, "note\t%s\n", termsafe.Line(note.String()))
	}
	for _, gap := range e.asked {
		fmt.Fprintf(w, "asked ssh -G\t%s\n", termsafe.Line(gap.String()))
	}
}

// Width at which long lists go on in the next line, in bytes.
const valueWidth = 60

func writeSetting(w io.Writer, k sshconf.Keyword, v sshconf.Value) {
	name, from := k.String(), termsafe.Line(v.Origin.String())
	for _, line := range wrapWords(v.Args, valueWidth) {
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, line, from)
		name, from = "", ""
	}
}

// wrapWords joins words by blanks into lines of about the given width. Tabs
// are shown as such, for they would tear the table.
func wrapWords(words []string, width int) []string {
	lines := []string{""}
	for _, word := range words {
		word = strings.ReplaceAll(termsafe.Line(word), "\t", `\t`)
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case len(*last)+1+len(word) > width:
			lines = append(lines, word)
		default:
			*last += " " + word
		}
	}
	return lines
}
