package findings

import (
	"io"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/advise"
	"sshpace/internal/show/document"
)

// adviceSchema names the layout of `advise --json`.
const adviceSchema = "sshpace.advice/1"

// JSON prints the advice for programs.
func (a *Advice) JSON(w io.Writer) error {
	type choice struct {
		advise.Listed
		Status alg.Status `json:"status"`
	}
	type list struct {
		Keyword string   `json:"keyword"`
		Advised []choice `json:"advised"`
		LeftOut []choice `json:"left_out,omitempty"`
	}
	ad := a.Advice
	out := struct {
		Schema   string           `json:"schema"`
		Host     string           `json:"host"`
		Strict   bool             `json:"strict"`
		Answer   *document.Choice `json:"answer"` // as in the reports
		Present  alg.Suite        `json:"present"`
		Advised  alg.Suite        `json:"advised"`
		Lists    []list           `json:"lists"`
		Insecure []choice         `json:"insecure_never_advised,omitempty"`
		Client   string           `json:"ssh_config"`
		Server   string           `json:"sshd_config"`
		Notes    []string         `json:"notes,omitempty"`
	}{
		Schema: adviceSchema, Host: a.Pattern, Strict: ad.Strict, Answer: document.ChoiceOf(ad.Choice), Present: ad.Present, Advised: ad.Advised,
		Client: ad.ClientConfig(a.Pattern), Server: ad.ServerConfig(), Notes: ad.Notes,
	}
	choices := func(kind alg.Kind, from []advise.Listed) []choice {
		var list []choice
		for _, c := range from {
			facts, _ := alg.Lookup(kind, c.Name)
			list = append(list, choice{c, facts.Status})
		}
		return list
	}
	for _, l := range ad.Lists {
		out.Lists = append(out.Lists, list{l.Kind.Keyword(), choices(l.Kind, l.Choices), choices(l.Kind, l.Dropped)})
	}
	if a.Insecure {
		out.Insecure = choices("", ad.Insecure())
	}
	return termsafe.WriteJSON(w, out, " ")
}
