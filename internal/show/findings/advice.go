// Package findings shows what commands beside bench and report found, as text
// and JSON: logins, latency, diagnoses, advice, how ssh_config reaches a host,
// and known_hosts files.
package findings

import (
	"fmt"
	"io"

	"sshpace/internal/base/termsafe"
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
	fmt.Fprint(out, a.Advice.ClientConfig(a.Pattern))
	fmt.Fprintf(out, "\n%s\n", a.Advice.ServerConfig())
	fate := "stays enabled, --strict removes it"
	if a.Strict {
		fate = "left out"
	}
	for _, line := range a.Advice.LeftOut() {
		fmt.Fprintf(out, "# %s: %s\n", fate, termsafe.Line(line))
	}
	for _, line := range a.verdict() {
		fmt.Fprintf(out, "# %s\n", termsafe.Line(line))
	}
	if !a.Checked {
		fmt.Fprintln(out, "# the lines for sshd_config were not checked: check them on the server with sshd -t")
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

// verdict says what the advice is worth, in the words of the reports.
func (a *Advice) verdict() []string {
	var lines []string
	for _, f := range document.AnswerOf(a.Ranking, a.Advice.Choice, "sshpace advise").Facts {
		if f.Name != document.Do {
			lines = append(lines, fmt.Sprintf("%-4s  %s", f.Name, f.Value))
		}
	}
	for _, note := range a.Advice.Notes {
		lines = append(lines, "note: "+note)
	}
	return lines
}
