//go:build linux

package findings

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/doctor"
)

// schema names the layout of the JSON form.
const diagnosisSchema = "sshpace.doctor/1"

// Report is what was looked for and found.
type Diagnosis struct {
	Schema    string           `json:"schema"`
	Target    string           `json:"target"`
	Complete  bool             `json:"complete"` // nothing kept it from looking at everything, such as a login that failed
	Login     *stats.Interval  `json:"login_ns,omitempty"`
	RoundTrip *stats.Interval  `json:"round_trip_ns,omitempty"`
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
// that are to be pasted: what was found, a line each, and then each with what to do.
func (r *Diagnosis) Text(w io.Writer, width int, all bool) error {
	var b strings.Builder
	for _, line := range text.Wrap("", r.answer(), width) {
		b.WriteString(line + "\n")
	}
	if len(r.Findings) > 1 {
		t := text.Table{Columns: []text.Column{{Right: true}, {Right: true}, {Fit: text.Cut}}}
		for i, f := range r.Findings {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("%d.", i+1), cost(f), f.What})
		}
		b.WriteString(t.Text(cmp.Or(width, text.Columns)))
	}
	lines := strings.Count(b.String(), "\n")
	for i, f := range r.Findings {
		each := finding(i+1, f, width)
		if lines += strings.Count(each, "\n"); !all && width > 0 && i > 0 && lines > screenLines {
			fmt.Fprintf(&b, "\n%d more in full: --all\n", len(r.Findings)-i)
			break
		}
		b.WriteString(each)
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

// screenLines is what a terminal has room for.
const screenLines = 20

// answer is what was found, in sentences.
func (r *Diagnosis) answer() string {
	var words []string
	n := 0
	for _, f := range r.Findings {
		if !f.Minor {
			n++
		}
	}
	switch {
	case !doctor.Faults(r.Findings) && r.Complete:
		words = append(words, fmt.Sprintf("No problems found (%s).", unit.Count(len(r.Checks), "check")))
	case !doctor.Faults(r.Findings):
		words = append(words, "No problems found so far; not all checks were made.")
	default:
		order := "."
		if n > 1 {
			order = ", the most expensive first."
		}
		words = append(words, unit.Count(n, "problem")+" found"+order)
		if !r.Complete {
			words = append(words, "Not all checks were made.")
		}
	}
	if r.Login != nil {
		words = append(words, fmt.Sprintf("A login to %s takes %s.", r.Target, doctor.Milliseconds(*r.Login)))
	}
	return strings.Join(words, " ")
}

// cost is what a finding costs.
func cost(f doctor.Finding) string {
	took := unit.Milliseconds(f.Cost.Value) + " ms "
	switch {
	case f.Breaks:
		return "broken"
	case f.Minor:
		return took + "a " + f.Per + ", normal"
	case f.Per != "login":
		return took + "for " + f.Per
	}
	return took + "a " + f.Per
}

// finding is one of them in full.
func finding(number int, f doctor.Finding, width int) string {
	out := []string{"", fmt.Sprintf("%d. %s (%s)", number, cost(f), f.Check)}
	for _, part := range []struct{ name, text string }{{"what", f.What}, {"seen", f.Evidence}, {"gain", f.Gain}, {"do", f.Where}} {
		out = append(out, text.Wrap("   "+text.Pad(part.name, 6), part.text, width)...)
	}
	lines := strings.Split(f.Do, "\n")
	indent := 9 // as far as there is room: what is to be copied is not broken
	for _, line := range lines {
		indent = max(0, min(indent, cmp.Or(width, text.Columns)-text.Width(line)))
	}
	for _, line := range lines {
		out = append(out, strings.Repeat(" ", indent)+line)
	}
	return strings.Join(out, "\n") + "\n"
}
