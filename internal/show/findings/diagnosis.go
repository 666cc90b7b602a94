//go:build linux

package findings

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/doctor"
)

// diagnosisSchema names the layout of the JSON form.
const diagnosisSchema = "sshpace.doctor/1"

// Diagnosis lists the checks of doctor and their results.
type Diagnosis struct {
	Schema    string           `json:"schema"`
	Target    string           `json:"target"`
	Complete  bool             `json:"complete"` // everything was examined: no login failed, for example
	Login     *stats.Interval  `json:"login_ns,omitempty"`
	AtLeast   bool             `json:"login_at_least,omitempty"` // a lower bound: nobody waited for its end
	RoundTrip *stats.Interval  `json:"round_trip_ns,omitempty"`
	Busy      float64          `json:"busy_pct,omitempty"` // of this machine's CPU time, during the logins; absent: not known
	Kept      *doctor.Kept     `json:"kept,omitempty"`
	Hidden    string           `json:"hidden,omitempty"` // why checks of transfers found out nothing
	Checks    []string         `json:"checks"`
	Findings  []doctor.Finding `json:"findings"`
}

// Diagnose reports the measurements.
func Diagnose(f *doctor.Facts, checks []doctor.Check, complete bool) *Diagnosis {
	r := &Diagnosis{Schema: diagnosisSchema, Target: f.Label, Complete: complete && f.Refusal == nil && f.Stuck == nil, Checks: []string{}, Findings: doctor.Judge(checks, f)}
	if slices.Contains(doctor.Needs(checks), doctor.Masters) {
		r.Kept = f.Kept()
	}
	for _, c := range checks {
		r.Checks = append(r.Checks, c.Name)
	}
	if slices.Contains(doctor.Needs(checks), doctor.Moving) && r.Complete {
		r.Hidden = f.Hidden()
	}
	if f.Logins.Whole.N > 0 {
		r.Login, r.RoundTrip, r.AtLeast, r.Busy = &f.Logins.Whole, &f.Logins.RoundTrip, f.Logins.Cut(), 100*f.Busy
	}
	return r
}

// JSON writes the report.
func (r *Diagnosis) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// Text writes the report for people, at most width columns wide except for lines to copy: the
// result, and each problem with its remedy, in full as far as they fit the screen, otherwise
// briefly. Normal results are not problems, and share one sentence unless all are wanted.
func (r *Diagnosis) Text(w io.Writer, width int, all bool) error {
	var b strings.Builder
	say := func(before, s string) {
		for _, line := range text.Wrap(before, s, width) {
			b.WriteString(line + "\n")
		}
	}
	say("", r.answer())
	short := false
	for i, f := range r.Findings {
		number := fmt.Sprintf("%d. ", i+1)
		if f.Minor { // they come last
			number = ""
		}
		full := finding(number, f, width)
		room := width == 0 || i == 0 || strings.Count(b.String(), "\n")+strings.Count(full, "\n") <= screenLines
		switch {
		case all, room && !short && !f.Minor:
			b.WriteString(full)
			continue
		case !short:
			b.WriteString("\n")
		}
		short = true
		say(number, cost(f)+" ("+f.Check+"): "+f.What)
	}
	if short {
		say("", "For details and what to do, add --all")
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

// answer returns the result in sentences.
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
	switch {
	case r.AtLeast:
		words = append(words, fmt.Sprintf("A login to %s takes more than %.0f s.", r.Target, math.Floor(r.Login.Value/1e9)))
	case r.Login != nil:
		words = append(words, fmt.Sprintf("A login to %s takes %s.", r.Target, doctor.Milliseconds(*r.Login)))
	}
	if r.Kept != nil {
		words = append(words, r.Kept.Words)
	}
	if r.Hidden != "" {
		words = append(words, r.Hidden)
	}
	if r.Busy >= busy {
		words = append(words, fmt.Sprintf("This machine was busy meanwhile (%.0f %% of its CPU time): logins take longer than on an idle one.", r.Busy))
	}
	return strings.Join(words, " ")
}

// busy is the percentage of a machine's CPU time on other work that delays logins.
const busy = 80

func cost(f doctor.Finding) string {
	took := unit.Milliseconds(f.Cost.Value) + " "
	if f.AtLeast {
		took = "more than " + took
	}
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

// finding prints one finding in full. Lines to copy are not broken.
func finding(number string, f doctor.Finding, width int) string {
	out := []string{"", fmt.Sprintf("%s%s (%s)", number, cost(f), f.Check)}
	for _, part := range []struct{ name, text string }{{"what", f.What}, {"seen", f.Evidence}, {"gain", f.Gain}, {"do", f.Where}} {
		out = append(out, text.Wrap("   "+text.Pad(part.name, 6), part.text, width)...)
	}
	for _, line := range strings.Split(f.Do, "\n") {
		out = append(out, "         "+line)
	}
	return strings.Join(out, "\n") + "\n"
}
