package findings

import (
	"io"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/conf"
)

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
		Jump: []string{}, Engine: e.engine(), Reasons: reasonsJSON(e.decision.Reasons),
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
