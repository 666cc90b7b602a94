// latency.go shows how long bytes took through ssh and back, while they come
// and summed up, as ping(8) does.

package findings

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/latency"
)

// schema names the layout of the JSON form.
const latencySchema = "sshpace.ping/1"

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
	for _, seq := range slices.Sorted(keys(l.rounds)) {
		l.line(l.rounds[seq])
	}
	return l.err
}

func keys(m map[int][]latency.Echo) func(func(int) bool) {
	return func(yield func(int) bool) {
		for seq := range m {
			if !yield(seq) {
				return
			}
		}
	}
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
	return figure3(int64(d)) + " ms"
}

// ms is milliseconds with three digits that count.
func figure3(ns int64) string {
	value := float64(ns) / 1e6
	switch {
	case value >= 100:
		return fmt.Sprintf("%.0f", value)
	case value >= 10:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}

// Text writes the summary for people, in lines of no more than width characters
// where that can be (60 or more); 0 is any width.
func (r *Latency) Text(w io.Writer, width int) error {
	var b strings.Builder
	l := layout{width > 0 && width < wide}
	if len(r.Lanes) > 0 {
		r.table(&b, l)
	}
	r.timeline(&b, l)
	if r.LoadBytesPerS > 0 {
		fmt.Fprintf(&b, "loaded: beside a transfer of %s\n", unit.Throughput(r.LoadBytesPerS))
	}
	if r.Skipped > 0 {
		fmt.Fprintf(&b, "%d rounds were not sent: this machine was stopped or busy\n", r.Skipped)
	}
	for _, note := range r.Notes {
		b.WriteString(strings.Join(termsafe.Fold(note, foldAt(width)), "\n") + "\n")
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

const (
	wide  = 78 // the table with titles and figures side by side
	folds = 80 // where notes fold on no terminal, and on a wide one
)

func foldAt(width int) int {
	if width <= 0 {
		return folds
	}
	return min(width, folds)
}

// layout is how titles stand to their figures.
type layout struct {
	above bool // on a line of their own: the terminal is narrow
}

// title begins the row of what s says.
func (l layout) title(s string) string {
	switch {
	case !l.above:
		return fmt.Sprintf("%-17s ", s)
	case s == "":
		return ""
	}
	return s + "\n"
}

// table sums the sessions up.
func (r *Latency) table(b *strings.Builder, l layout) {
	fmt.Fprintf(b, "\n--- %s: latency over ssh, ms ---\n", r.Target)
	fmt.Fprintf(b, "%s%5s %5s %6s %13s", l.title(""), "sent", "lost", "min", "p50")
	for _, q := range latency.Quantiles {
		fmt.Fprintf(b, " %6s", q.Name)
	}
	fmt.Fprintf(b, " %6s\n", "max")
	for _, s := range r.Lanes {
		row(b, s, l)
	}
}

func title(s latency.Summary) string {
	if s.Loaded {
		return s.Lane + " loaded"
	}
	return s.Lane
}

func row(b *strings.Builder, s latency.Summary, l layout) {
	fmt.Fprintf(b, "%s%5d %5d", l.title(title(s)), s.Sent, s.Sent-s.Back)
	if s.Back == 0 {
		b.WriteString("\n")
		return
	}
	median := figure3(s.Median.Value)
	if s.Median.Hi > 0 {
		// The farther end: half of a skewed interval would not reach it.
		median += " ±" + figure3(max(s.Median.Hi-s.Median.Value, s.Median.Value-s.Median.Lo))
	}
	fmt.Fprintf(b, " %6s %13s", figure3(s.Min), median)
	for _, q := range latency.Quantiles {
		text := "-"
		if ns, known := s.Quantiles[q.Name]; known {
			text = figure3(ns)
		}
		fmt.Fprintf(b, " %6s", text)
	}
	fmt.Fprintf(b, " %6s\n", figure3(s.Max))
}

// timeline is the median of each tenth of the time.
func (r *Latency) timeline(b *strings.Builder, l layout) {
	const enough = 20 // bytes in a lane, so that a tenth has some
	heading := "p50 of each tenth of the time, ms\n"
	for _, s := range r.Lanes {
		if s.Back < enough {
			continue
		}
		b.WriteString(heading)
		heading = ""
		b.WriteString(l.title(title(s)))
		var tenths []string
		for _, ns := range s.Timeline {
			text := "-"
			if ns > 0 {
				text = figure3(ns)
			}
			tenths = append(tenths, fmt.Sprintf("%5s", text))
		}
		b.WriteString(strings.Join(tenths, " ") + "\n")
	}
}
