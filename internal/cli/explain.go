package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshconf"
)

// explainFlags are the flags of `sshpace explain`.
type explainFlags struct {
	connection connectionFlags
	all, json  bool
}

func newExplainCommand(sys System) *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain [user@]host",
		Short: "Show what applies to a host, which line says so, and which engine run will use",
		Long: `Shows the effective ssh configuration of a host, where each value comes from, and
whether run connects by itself (native) or through the ssh program (openssh), and why.

It reads the files that ssh reads and opens no connection. As with ssh, commands of
"Match exec" lines are run, and CanonicalizeHostname asks the DNS.`,
		Example: `  sshpace explain web1
  sshpace explain -o ProxyJump=gate --all deploy@web1
  sshpace explain --json web1`,
		Args: exactlyOneHost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return explain(cmd.Context(), sys, f, args[0])
		},
	}
	f.connection.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.all, "all", false, "show defaults, too")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return cmd
}

func exactlyOneHost(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError("name one host, such as: sshpace explain web1", "explain takes one host, got %d", len(args))
	}
	return nil
}

func explain(ctx context.Context, sys System, f explainFlags, text string) error {
	h, err := host.Parse(text)
	if err != nil {
		return usageError("write it as user@host, user@host:port or ssh://user@host:port", "%s", err)
	}
	router, err := route.New(ctx, f.connection.params(sys))
	if err != nil {
		return err
	}
	config, err := router.Configuration()
	if err != nil {
		return err
	}
	for _, warning := range config.Warnings() {
		fmt.Fprintf(sys.Stderr, "sshpace: warning: %s\n", oneLine(warning))
	}
	e, err := explanationOf(ctx, router, config, h)
	if err != nil {
		return route.ResolveError(err, h.Name)
	}
	if f.json {
		return e.writeJSON(sys.Stdout)
	}
	return e.writeText(sys.Stdout, f.all)
}

// explanation is what explain shows.
type explanation struct {
	resolved *sshconf.Resolved
	decision sshconf.Decision
	asked    []sshconf.Gap // what ssh -G was asked about
}

func explanationOf(ctx context.Context, router *route.Router, config *route.Configuration, h host.Host) (*explanation, error) {
	query := route.Query(h)
	first, err := config.Resolve(ctx, query)
	if err != nil {
		return nil, err
	}
	resolved, err := config.Asker.Resolve(ctx, query)
	if err != nil {
		return nil, err
	}
	e := &explanation{resolved: resolved, asked: first.Gaps}
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

// writeText prints a summary and a table of the settings.
func (e *explanation) writeText(w io.Writer, all bool) error {
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

func (e *explanation) summary(w io.Writer) {
	r := e.resolved
	fmt.Fprintf(w, "host\t%s\n", termsafe.Line(r.Name))
	fmt.Fprintf(w, "connects to\t%s\n", termsafe.Line(host.Target{Name: r.HostName(), User: r.User(), Port: uint16(r.Port())}.String()))
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

// explainSchema names the form of the JSON output.
const explainSchema = "sshpace.explain/1"

type explainJSON struct {
	Schema   string        `json:"schema"`
	Host     string        `json:"host"`
	HostName string        `json:"hostname"`
	Port     int           `json:"port"`
	User     string        `json:"user"`
	Jump     []string      `json:"jump"`
	Engine   string        `json:"engine"`
	Reasons  []reasonJSON  `json:"reasons"`
	Notes    []reasonJSON  `json:"notes"`
	AskedSSH []reasonJSON  `json:"asked_ssh"`
	Settings []settingJSON `json:"settings"`
}

type reasonJSON struct {
	Setting string     `json:"setting,omitempty"`
	Text    string     `json:"text"`
	Origin  originJSON `json:"origin"`
}

type settingJSON struct {
	Name   string     `json:"name"`
	Values []string   `json:"values"`
	Origin originJSON `json:"origin"`
}

type originJSON struct {
	Source string `json:"source"` // file, default, command line, host argument, ssh -G, derived
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
}

// writeJSON prints all settings, defaults included, with a versioned schema.
func (e *explanation) writeJSON(w io.Writer) error {
	r := e.resolved
	doc := explainJSON{Schema: explainSchema, Host: r.Name, HostName: r.HostName(), Port: r.Port(), User: r.User(),
		Jump: []string{}, Engine: e.decision.Engine.String(), Reasons: reasonsJSON(e.decision.Reasons),
		Notes: reasonsJSON(e.decision.Notes), AskedSSH: []reasonJSON{}}
	for _, hop := range r.ProxyJump() {
		doc.Jump = append(doc.Jump, hop.String())
	}
	for _, gap := range e.asked {
		doc.AskedSSH = append(doc.AskedSSH, reasonJSON{Text: gap.Reason, Origin: originOf(gap.Origin)})
	}
	for k, v := range r.Settings() {
		doc.Settings = append(doc.Settings, settingJSON{k.String(), append([]string{}, v.Args...), originOf(v.Origin)})
	}
	return termsafe.WriteJSON(w, doc, "")
}

func reasonsJSON(reasons []sshconf.Reason) []reasonJSON {
	out := []reasonJSON{}
	for _, r := range reasons {
		out = append(out, reasonJSON{r.Keyword.String(), r.Text, originOf(r.Origin)})
	}
	return out
}

func originOf(o sshconf.Origin) originJSON {
	if o.Source == sshconf.FromFile {
		return originJSON{"file", o.File, o.Line}
	}
	return originJSON{Source: o.String()}
}
