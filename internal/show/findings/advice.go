// Package findings shows the results of commands other than bench and report, as text and JSON:
// logins, latency, diagnoses, advice, how ssh_config reaches a host, and known_hosts files.
package findings

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/document"
)

// Advice is advice as it is shown.
type Advice struct {
	Advice   *advise.Advice
	Ranking  *rank.Ranking // that it follows from
	Pattern  string        // of the Host line
	Strict   bool
	Insecure bool // faster algorithms that are never advised, too
	Server   bool // the lines for sshd_config, too
	Checked  bool // those were checked
	Commands document.Commands
	Brief    bool   // the client's lines alone: a proof follows
	Written  bool   // the lines are about to be written: no instructions are needed
	Applied  string // the file that has them already; "" for none
}

// Text prints the advice: lines that can be pasted, and comments.
func (a *Advice) Text(w io.Writer) error {
	var out bytes.Buffer
	a.text(&out)
	_, err := out.WriteTo(w)
	return err
}

func (a *Advice) text(out io.Writer) {
	answer := document.AnswerOf(a.Ranking, a.Advice.Choice, a.Commands)
	a.comment(out, strings.Join(answer.Says, " "))
	t := text.Table{Columns: make([]text.Column, 2)}
	for _, s := range answer.Further() {
		if !a.Written && !a.Brief && a.Applied == "" {
			t.Rows = append(t.Rows, []string{"#   " + s.What, s.Copy})
		}
	}
	fmt.Fprintf(out, "\n%s\n", a.Advice.ClientConfig(a.Pattern))
	if len(t.Rows) > 0 {
		fmt.Fprintf(out, "%s\n", t.Text(0))
	}
	if a.Applied != "" && !a.Written {
		a.comment(out, "already in "+a.Applied+": nothing to change")
	}
	if a.Brief {
		return
	}
	if a.Server {
		fmt.Fprintf(out, "%s\n", a.Advice.ServerConfig())
	} else {
		a.comment(out, "sshd_config can stay as it is: the order of the client decides. --strict gives lines for it.")
	}
	if left := a.Advice.LeftOut(); left > 0 {
		fate := "still enabled; --strict removes them"
		if a.Strict {
			fate = "left out"
		}
		a.comment(out, fmt.Sprintf("%s: not advised, %s (--json has the reasons).", unit.Count(left, "other algorithm"), fate))
	}
	for _, note := range a.Advice.Notes {
		a.comment(out, "note: "+note)
	}
	if a.Server && !a.Checked {
		a.comment(out, "the lines for sshd_config were not checked: check them on the server with sshd -t")
	}
	if !a.Insecure {
		return
	}
	list := a.Advice.Insecure()
	for _, c := range list {
		fmt.Fprintf(out, "# INSECURE, never advised: %s: %s\n", termsafe.Line(c.Name), termsafe.Line(c.Reason))
	}
	if len(list) == 0 {
		fmt.Fprintln(out, "# nothing insecure was measured that is faster")
	}
}

// comment writes a text as comments of a configuration.
func (a *Advice) comment(out io.Writer, s string) {
	for _, line := range text.Wrap("# ", termsafe.Line(s), 0) {
		fmt.Fprintln(out, "# "+strings.TrimLeft(line, "# "))
	}
}

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
