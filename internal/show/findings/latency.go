package findings

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/latency"
)

// schema names the layout of the JSON form.
const latencySchema = "sshpace.latency/1"

// Report is what was measured.
type Latency struct {
	Schema   string        `json:"schema"`
	Target   string        `json:"target"`
	Client   string        `json:"client"`
	Interval time.Duration `json:"interval_ns"`
	Notes    []string      `json:"notes"`
	*latency.Result
}

// Of is the report of sessions of a client.
func LatencyOf(c *latency.Client, s *latency.Sessions, interval time.Duration, r *latency.Result) *Latency {
	return &Latency{Schema: latencySchema, Target: c.Destination.Label, Client: c.SSH.Version, Interval: interval, Notes: s.Notes, Result: r}
}

// JSON writes the report.
func (r *Latency) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// Live writes a line for every round, once all of its bytes are back.
type LiveLatency struct {
	w      io.Writer
	lanes  []string
	rounds map[int][]latency.Echo
	next   int
	err    error
}

// NewLive writes lines about lanes.
func NewLiveLatency(w io.Writer, lanes []string) *LiveLatency {
	return &LiveLatency{w: w, lanes: lanes, rounds: map[int][]latency.Echo{}, next: 1}
}

// Add takes an echo and writes the rounds that it completes, in order.
func (l *LiveLatency) Add(e latency.Echo) {
	l.rounds[e.Seq] = append(l.rounds[e.Seq], e)
	for len(l.rounds[l.next]) == len(l.lanes) {
		l.line(l.rounds[l.next])
		delete(l.rounds, l.next)
		l.next++
	}
}

// Rest writes rounds that were never completed, and tells of the first error.
func (l *LiveLatency) Rest() error {
	for _, seq := range slices.Sorted(maps.Keys(l.rounds)) {
		l.line(l.rounds[seq])
	}
	return l.err
}

func (l *LiveLatency) line(echoes []latency.Echo) {
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
	if d == latency.Lost {
		return "lost"
	}
	return unit.Milliseconds(float64(d)) + " ms"
}

// Text writes the summary for people, in lines of no more than width characters
// where that can be (60 or more); 0 is any width.
func (r *Latency) Text(w io.Writer, width int) error {
	var b strings.Builder
	if len(r.Lanes) > 0 {
		if s := r.Lanes[0]; s.Back > 0 {
			fmt.Fprintf(&b, "\nA byte through %s comes back in %s ms (median of %d).\n", title(s), unit.Milliseconds(s.Median.Value), s.Back)
		}
		fmt.Fprintf(&b, "\n--- %s: latency over ssh, ms ---\n%s", r.Target, r.table().Text(width))
	}
	if t := r.timeline(); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "p50 of each tenth of the time, ms\n%s", t.Text(width))
	}
	if r.LoadBytesPerS > 0 {
		fmt.Fprintf(&b, "loaded: beside a transfer of %s\n", unit.Throughput(r.LoadBytesPerS))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%d rounds were not sent: this machine was stopped or busy\n", r.Skipped)
	}
	for _, note := range r.Notes {
		b.WriteString(strings.Join(text.Wrap("", note, min(cmp.Or(width, text.Columns), text.Columns)), "\n") + "\n")
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

// table sums the sessions up.
func (r *Latency) table() *text.Table {
	t := &text.Table{Columns: []text.Column{{Fit: text.Above}}}
	heads := []string{"sent", "lost", "min", "p50", ""}
	for _, q := range latency.Quantiles {
		heads = append(heads, q.Name)
	}
	for _, head := range append(heads, "max") {
		t.Columns = append(t.Columns, text.Column{Head: head, Right: head != "", Tight: true})
	}
	for _, s := range r.Lanes {
		t.Rows = append(t.Rows, row(s))
	}
	return t
}

func title(s latency.Summary) string {
	if s.Loaded {
		return s.Lane + " loaded"
	}
	return s.Lane
}

func row(s latency.Summary) []string {
	cells := []string{title(s), fmt.Sprint(s.Sent), fmt.Sprint(s.Sent - s.Back)}
	if s.Back == 0 {
		return cells
	}
	median := s.Median
	if median.N < stats.MinExact {
		median.Lo, median.Hi = median.Value, median.Value
	}
	cells = append(cells, figure3(s.Min), unit.Milliseconds(median.Value), median.Bounds(unit.Milliseconds))
	for _, q := range latency.Quantiles {
		text := "-"
		if ns, known := s.Quantiles[q.Name]; known {
			text = figure3(ns)
		}
		cells = append(cells, text)
	}
	return append(cells, figure3(s.Max))
}

func figure3(ns int64) string { return unit.Milliseconds(float64(ns)) }

// timeline is the median of each tenth of the time.
func (r *Latency) timeline() *text.Table {
	const enough, tenths = 20, 10 // bytes in a lane, so that a tenth has some
	t := &text.Table{Columns: []text.Column{{Fit: text.Above}}}
	for range tenths {
		t.Columns = append(t.Columns, text.Column{Right: true, Tight: true})
	}
	for _, s := range r.Lanes {
		if s.Back < enough {
			continue
		}
		cells := []string{title(s)}
		for _, ns := range s.Timeline {
			text := "-"
			if ns > 0 {
				text = figure3(ns)
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
