// Package latency shows how long bytes took through ssh and back, while they come
// and summed up, as ping(8) does.
package latency

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/ping"
)

// schema names the layout of the JSON form.
const schema = "sshpace.ping/1"

// Report is what was measured.
type Report struct {
	Schema   string        `json:"schema"`
	Target   string        `json:"target"`
	Client   string        `json:"client"`
	Interval time.Duration `json:"interval_ns"`
	Notes    []string      `json:"notes"`
	*ping.Result
}

// Of is the report of sessions of a client.
func Of(c *ping.Client, s *ping.Sessions, interval time.Duration, r *ping.Result) *Report {
	return &Report{Schema: schema, Target: c.Destination.Label, Client: c.SSH.Version, Interval: interval, Notes: s.Notes, Result: r}
}

// JSON writes the report.
func (r *Report) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// Live writes a line for every round, once all of its bytes are back.
type Live struct {
	w      io.Writer
	lanes  []string
	rounds map[int][]ping.Echo
	next   int
	err    error
}

// NewLive writes lines about lanes.
func NewLive(w io.Writer, lanes []string) *Live {
	return &Live{w: w, lanes: lanes, rounds: map[int][]ping.Echo{}, next: 1}
}

// Add takes an echo and writes the rounds that it completes, in order.
func (l *Live) Add(e ping.Echo) {
	l.rounds[e.Seq] = append(l.rounds[e.Seq], e)
	for len(l.rounds[l.next]) == len(l.lanes) {
		l.line(l.rounds[l.next])
		delete(l.rounds, l.next)
		l.next++
	}
}

// Rest writes rounds that were never completed, and tells of the first error.
func (l *Live) Rest() error {
	for _, seq := range slices.Sorted(keys(l.rounds)) {
		l.line(l.rounds[seq])
	}
	return l.err
}

func keys(m map[int][]ping.Echo) func(func(int) bool) {
	return func(yield func(int) bool) {
		for seq := range m {
			if !yield(seq) {
				return
			}
		}
	}
}

func (l *Live) line(echoes []ping.Echo) {
	words := []string{fmt.Sprintf("seq=%d", echoes[0].Seq)}
	for _, lane := range l.lanes {
		for _, e := range echoes {
			if e.Lane == lane {
				words = append(words, lane+"="+took(e.Latency))
			}
		}
	}
	if echoes[0].Loaded {
		words = append(words, "(loaded)")
	}
	if _, err := fmt.Fprintln(l.w, strings.Join(words, "  ")); err != nil && l.err == nil {
		l.err = err
	}
}

func took(d time.Duration) string {
	if d == ping.Lost {
		return "lost"
	}
	return ms(int64(d)) + " ms"
}

// ms is milliseconds with three digits that count.
func ms(ns int64) string {
	value := float64(ns) / 1e6
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// Text writes the summary for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	if len(r.Lanes) > 0 {
		r.table(&b)
	}
	r.timeline(&b)
	if r.LoadBytesPerS > 0 {
		fmt.Fprintf(&b, "loaded: beside a transfer of %s\n", unit.Throughput(r.LoadBytesPerS))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%d rounds were not sent: this machine was stopped or busy\n", r.Skipped)
	}
	for _, note := range r.Notes {
		b.WriteString(note + "\n")
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

// table sums the sessions up.
func (r *Report) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n--- %s: latency over ssh, ms ---\n", r.Target)
	fmt.Fprintf(b, "%-18s %5s %5s %7s %15s", "", "sent", "lost", "min", "p50")
	for _, q := range ping.Quantiles {
		fmt.Fprintf(b, " %7s", q.Name)
	}
	fmt.Fprintf(b, " %7s\n", "max")
	for _, s := range r.Lanes {
		row(b, s)
	}
}

func title(s ping.Summary) string {
	if s.Loaded {
		return s.Lane + " loaded"
	}
	return s.Lane
}

func row(b *strings.Builder, s ping.Summary) {
	fmt.Fprintf(b, "%-18s %5d %5d", title(s), s.Sent, s.Sent-s.Back)
	if s.Back == 0 {
		b.WriteString("\n")
		return
	}
	median := ms(s.Median.Value)
	if s.Back > 1 {
		median += " ±" + ms((s.Median.Hi-s.Median.Lo)/2)
	}
	fmt.Fprintf(b, " %7s %15s", ms(s.Min), median)
	for _, q := range ping.Quantiles {
		text := "-"
		if ns, known := s.Quantiles[q.Name]; known {
			text = ms(ns)
		}
		fmt.Fprintf(b, " %7s", text)
	}
	fmt.Fprintf(b, " %7s\n", ms(s.Max))
}

// timeline is the median of each tenth of the time.
func (r *Report) timeline(b *strings.Builder) {
	const enough = 20 // bytes in a lane, so that a tenth has some
	for _, s := range r.Lanes {
		if s.Back < enough {
			continue
		}
		var words []string
		for _, ns := range s.Timeline {
			word := "-"
			if ns > 0 {
				word = ms(ns)
			}
			words = append(words, word)
		}
		fmt.Fprintf(b, "%-18s p50 of each tenth of the time: %s\n", title(s), strings.Join(words, " "))
	}
}
