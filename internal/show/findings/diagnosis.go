//go:build linux

// diagnosis.go shows what doctor found, for people and for programs.

package findings

import (
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/doctor"
	"sshpace/internal/bench/login"
)

// schema names the layout of the JSON form.
const diagnosisSchema = "sshpace.doctor/1"

// Report is what was looked for and found.
type Diagnosis struct {
	Schema    string           `json:"schema"`
	Target    string           `json:"target"`
	Complete  bool             `json:"complete"` // nothing kept it from looking at everything, such as a login that failed
	Login     *login.Figure    `json:"login_ns,omitempty"`
	RoundTrip *login.Figure    `json:"round_trip_ns,omitempty"`
	Checks    []string         `json:"checks"`
	Findings  []doctor.Finding `json:"findings"`
}

// New is the report on what was measured.
func Diagnose(f *doctor.Facts, checks []doctor.Check, complete bool) *Diagnosis {
	r := &Diagnosis{Schema: diagnosisSchema, Target: f.Label, Complete: complete && f.Refusal == nil && f.Stuck == nil, Checks: []string{}, Findings: doctor.Judge(checks, f)}
	for _, c := range checks {
		r.Checks = append(r.Checks, c.Name)
	}
	if f.Logins.Whole.N > 0 {
		r.Login, r.RoundTrip = &f.Logins.Whole, &f.Logins.RoundTrip
	}
	return r
}

// JSON writes the report.
func (r *Diagnosis) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// Text writes the report for people, at most width columns wide but for lines
// that are to be pasted.
func (r *Diagnosis) Text(w io.Writer, width int) error {
	var b strings.Builder
	r.head(&b)
	for i, f := range r.Findings {
		write(&b, i+1, f, width)
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

func (r *Diagnosis) head(b *strings.Builder) {
	fmt.Fprintf(b, "DOCTOR  %s", r.Target)
	if r.Login != nil {
		fmt.Fprintf(b, ": a login takes %s", doctor.Milliseconds(*r.Login))
	}
	b.WriteString("\n")
	switch {
	case !doctor.Faults(r.Findings) && r.Complete:
		fmt.Fprintf(b, "No problems found (%s).\n", unit.Count(len(r.Checks), "check"))
	case !doctor.Faults(r.Findings):
		b.WriteString("No problems found so far; not all checks were made.\n")
	case !r.Complete:
		b.WriteString("Not all checks were made.\n")
	}
}

// write is one finding.
func write(b *strings.Builder, number int, f doctor.Finding, width int) {
	head := fmt.Sprintf("%.0f ms a %s", f.Cost.Value/1e6, f.Per)
	switch {
	case f.Breaks:
		head = "broken"
	case f.Minor:
		head += ", no fault"
	case f.Per != "login":
		head = fmt.Sprintf("%.0f ms for %s", f.Cost.Value/1e6, f.Per)
	}
	fmt.Fprintf(b, "\n%d. %s (%s)\n", number, head, f.Check)
	for _, part := range []struct{ name, text string }{{"what", f.What}, {"seen", f.Evidence}, {"gain", f.Gain}, {"do", f.Where}} {
		indented(b, part.name, part.text, width)
	}
	for line := range strings.SplitSeq(f.Do, "\n") {
		fmt.Fprintf(b, "         %s\n", line)
	}
}

// usualWidth is that of no terminal, leastWidth that of a text in a narrow one.
const (
	usualWidth = 80
	leastWidth = 30
)

// indented is a text behind its name, folded.
func indented(b *strings.Builder, name, text string, width int) {
	const indent = 9
	if width == 0 {
		width = usualWidth
	}
	for i, line := range termsafe.Fold(text, max(leastWidth, width-indent)) {
		if i > 0 {
			name = ""
		}
		fmt.Fprintf(b, "   %-5s %s\n", name, line)
	}
}
