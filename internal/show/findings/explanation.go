package findings

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
)

// Explanation lists the settings of a host, the lines that they come from, and the resulting
// engine.
type Explanation struct {
	resolved *conf.Resolved
	decision conf.Decision
	asked    []conf.Gap // the arguments for ssh -G
	kept     string     // socket of a connection that is kept open, "" if none is
}

// Explain resolves a host. config is the configuration of router.
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
	case route.IsJumpsError(err): // the user wants to know which lines make the circle
		v, _ := resolved.Get(conf.ProxyJump)
		e.decision.Reasons = []conf.Reason{{Keyword: conf.ProxyJump, Text: err.Error(), Origin: v.Origin}}
	case err != nil:
		return nil, err
	default:
		e.decision = found.Decision
		if path := router.Master(found.Host); openssh.Listens(path) {
			e.kept = path
		}
	}
	return e, nil
}

// Text prints a summary and a table of the settings, at most width columns wide (0: any width).
func (e *Explanation) Text(w io.Writer, all bool, width int) error {
	summary := text.Table{Columns: make([]text.Column, 2), Rows: e.summary()}
	t, hidden := e.table(all, nil)
	var files []string // whose names are listed below, since they do not fit in full
	if lines := t.Lines(0); width > 0 && slices.ContainsFunc(lines, func(line string) bool { return text.Width(line) >= width }) {
		var names map[string]string
		names, files = e.shortNames()
		t, _ = e.table(all, names)
	}
	out := summary.Text(0) + "\n" + t.Text(max(0, width-1))
	if len(files) > 0 {
		out += "\n" + strings.Join(files, "\n") + "\n"
	}
	if hidden > 0 {
		out += fmt.Sprintf("\n%d further settings have their default value; --all shows them.\n", hidden)
	}
	_, err := io.WriteString(w, out)
	return err
}

// table has a row for each setting, and counts those with their default value. names gives the
// names of files.
func (e *Explanation) table(all bool, names map[string]string) (t text.Table, hidden int) {
	t.Columns = []text.Column{{Head: "SETTING"}, {Head: "VALUE", Fit: text.Above}, {Head: "FROM"}}
	for k, v := range e.resolved.Settings() {
		if v.Origin.Source == conf.FromDefault && !all {
			hidden++
			continue
		}
		v.Origin.File = cmp.Or(names[v.Origin.File], v.Origin.File)
		t.Rows = append(t.Rows, setting(k, v)...)
	}
	return t, hidden
}

// shortNames names each file by its last part, where no other one has the same, and explains the
// names.
func (e *Explanation) shortNames() (names map[string]string, legend []string) {
	names = map[string]string{}
	taken := map[string]bool{}
	for _, v := range e.resolved.Settings() {
		file := v.Origin.File
		if short := filepath.Base(file); file != "" && names[file] == "" && short != file && !taken[short] {
			names[file], taken[short] = short, true
			legend = append(legend, termsafe.Line(short+" is "+file))
		}
	}
	return names, legend
}

// engines describes the engines of run.
var engines = map[conf.Engine]string{conf.Native: "sshpace run connects by itself", conf.OpenSSH: "sshpace run starts ssh"}

// engine names the engine that can connect; "none" where nobody may.
func (e *Explanation) engine() string { return cmp.Or(string(e.decision.Engine), "none") }

// summary says how the host is reached, in two columns.
func (e *Explanation) summary() (rows [][]string) {
	add := func(name, value string) { rows = append(rows, []string{name, termsafe.Line(value)}) }
	r := e.resolved
	add("host", r.Name)
	add("connects to", host.Endpoint{Name: r.HostName(), User: r.User(), Port: uint16(r.Port())}.String())
	for _, hop := range r.ProxyJump() {
		add("through", hop.String())
	}
	add("engine", strings.TrimSuffix(e.engine()+": "+engines[e.decision.Engine], ": "))
	if e.kept != "" {
		add("kept", "sshpace uses the connection that is kept open at "+e.kept)
	}
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

// valueWidth is the width at which long lists continue in the next line.
const valueWidth = 60

// setting returns a row, or as many as a long list takes. Tabs are shown as \t.
func setting(k conf.Keyword, v conf.Value) (rows [][]string) {
	row := []string{k.String(), "", termsafe.Line(v.Origin.String())}
	words := strings.ReplaceAll(termsafe.Line(strings.Join(v.Args, " ")), "\t", `\t`)
	for _, row[1] = range text.Wrap("", words, valueWidth) {
		rows = append(rows, row)
		row = make([]string, 3)
	}
	return rows
}

// explanationSchema names the form of the JSON output.
const explanationSchema = "sshpace.config/1"

type explained struct {
	Schema   string        `json:"schema"`
	Host     string        `json:"host"`
	HostName string        `json:"hostname"`
	Port     int           `json:"port"`
	User     string        `json:"user"`
	Jump     []string      `json:"jump"`
	Engine   string        `json:"engine"`
	Kept     string        `json:"kept,omitempty"` // socket of a connection that is kept open
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

// JSON prints all settings, defaults included, with a versioned schema.
func (e *Explanation) JSON(w io.Writer) error {
	r := e.resolved
	doc := explained{Schema: explanationSchema, Host: r.Name, HostName: r.HostName(), Port: r.Port(), User: r.User(),
		Jump: []string{}, Engine: e.engine(), Kept: e.kept, Reasons: reasonsJSON(e.decision.Reasons),
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

func reasonsJSON(reasons []conf.Reason) []reasonJSON {
	out := []reasonJSON{}
	for _, r := range reasons {
		out = append(out, reasonJSON{r.Keyword.String(), r.Text, originOf(r.Origin)})
	}
	return out
}

func originOf(o conf.Origin) originJSON {
	if o.Source == conf.FromFile {
		return originJSON{"file", o.File, o.Line}
	}
	return originJSON{Source: o.String()}
}
