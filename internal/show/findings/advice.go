// Package findings shows what commands beside bench and report found, as text
// and JSON: logins, latency, diagnoses, advice, how ssh_config reaches a host,
// and known_hosts files.
package findings

import (
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/document"
)

// View is advice as it is shown.
type Advice struct {
	Advice   *advise.Advice
	Ranking  *rank.Ranking // that it follows from
	Pattern  string        // of the Host line
	Strict   bool
	Insecure bool // what is faster and never advised, too
	Checked  bool // the lines for sshd_config
}

// Text prints the advice: lines that can be pasted, and comments.
func (a *Advice) Text(out io.Writer) {
	a.comment(out, strings.Join(document.AnswerOf(a.Ranking, a.Advice.Choice, document.Standard).Says, " "))
	fmt.Fprint(out, a.Advice.ClientConfig(a.Pattern))
	fmt.Fprintf(out, "\n%s\n", a.Advice.ServerConfig())
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
	if !a.Checked {
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

// comment is a text in lines that a configuration ignores.
func (a *Advice) comment(out io.Writer, s string) {
	for _, line := range text.Wrap("# ", termsafe.Line(s), 0) {
		fmt.Fprintln(out, "# "+strings.TrimLeft(line, "# "))
	}
}
