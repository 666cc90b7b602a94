package findings

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/latency"
	"sshpace/internal/show/document"
	"sshpace/internal/sys/terminal"
)

// latencySchema names the layout of the JSON form.
const latencySchema = "sshpace.latency/1"

// Latency is the report of measured sessions.
type Latency struct {
	Schema   string        `json:"schema"`
	Target   string        `json:"target"`
	Client   string        `json:"client"`
	Interval time.Duration `json:"interval_ns"`
	Notes    []string      `json:"notes"`
	*latency.Result
}

// LatencyOf reports the sessions of a client.
func LatencyOf(b bed.Bed, s *latency.Sessions, interval time.Duration, r *latency.Result) *Latency {
	return &Latency{Schema: latencySchema, Target: b.Destination.Label, Client: b.SSH.Version, Interval: interval, Notes: s.Notes, Result: r}
}

// JSON writes the report.
func (r *Latency) JSON(w io.Writer) error { return termsafe.WriteJSON(w, r, " ") }

// LiveLatency shows every round, once all of its bytes are back: on a terminal the newest one,
// elsewhere a line each.
type LiveLatency struct {
	screen *terminal.Screen
	lanes  []string
	rounds map[int][]latency.Echo
	next   int
	below  []string
}

// NewLiveLatency shows rounds of lanes, on a terminal above lines.
func NewLiveLatency(screen *terminal.Screen, lanes []string, below ...string) *LiveLatency {
	return &LiveLatency{screen: screen, lanes: lanes, rounds: map[int][]latency.Echo{}, next: 1, below: below}
}

// Add takes an echo and shows the rounds that it completes, in order.
func (l *LiveLatency) Add(e latency.Echo) {
	l.rounds[e.Seq] = append(l.rounds[e.Seq], e)
	for len(l.rounds[l.next]) == len(l.lanes) {
		l.line(l.rounds[l.next])
		delete(l.rounds, l.next)
		l.next++
	}
}

// Rest shows rounds that were never completed, and clears the drawing.
func (l *LiveLatency) Rest() {
	for _, seq := range slices.Sorted(maps.Keys(l.rounds)) {
		l.line(l.rounds[seq])
	}
	_ = l.screen.Draw()
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
	l.screen.Tell(strings.Join(words, "  "), l.below...)
}

func took(d time.Duration) string {
	if d == latency.Lost {
		return "lost"
	}
	return unit.Milliseconds(d)
}

// Text writes the summary for people, in lines of at most width characters where possible (60 or
// more); 0 is any width.
func (r *Latency) Text(w io.Writer, width int) error {
	var b strings.Builder
	wide := min(cmp.Or(width, text.Columns), text.Columns)
	if len(r.Lanes) > 0 {
		fmt.Fprintf(&b, "%s\n\n%s", strings.Join(text.Wrap("", r.answer(), wide), "\n"), r.table().Text(width))
	}
	if t := r.timeline(); len(t.Rows) > 0 {
		fmt.Fprintf(&b, "\np50 of each tenth of the time, ms\n%s", t.Text(width))
	}
	var notes []document.Remark
	for _, s := range r.Lanes {
		if !s.Loaded {
			notes = append(notes, document.Remark{Name: s.Lane, Value: lanes[s.Lane]})
		}
	}
	if r.LoadBytesPerS > 0 {
		notes = append(notes, document.Remark{Name: "loaded", Value: "during a transfer of " + unit.Throughput(r.LoadBytesPerS).String()})
	}
	if r.Skipped > 0 {
		notes = append(notes, document.Remark{Name: "skipped", Value: unit.Count(r.Skipped, "round") + ": this machine was stopped or busy"})
	}
	for _, note := range r.Notes {
		notes = append(notes, document.Remark{Name: "note", Value: note})
	}
	notes = append(notes, document.Measured(r.Target, r.Client, ""))
	fmt.Fprintf(&b, "\n%s\n", strings.Join(document.RemarkLines(notes, wide), "\n"))
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}

// lanes describes the kinds of sessions.
var lanes = map[string]string{"pty": "through a terminal, as when you type", "unobscured": "the same, without hidden keystroke timing", "pipe": "without a terminal", "kept": "through a terminal, over the connection that is kept"}

// answer says how typing feels.
func (r *Latency) answer() string {
	s := r.Lanes[0]
	if s.Back == 0 {
		return "No byte came back from " + r.Target + "."
	}
	return fmt.Sprintf("A typed key shows after %s. Below about 100 ms typing feels immediate.", s.Median.Bounded().Noted(unit.InMilliseconds, " ms", fmt.Sprintf("median of %d", s.Back)))
}

// table summarizes the sessions.
func (r *Latency) table() *text.Table {
	t := &text.Table{Columns: []text.Column{{Head: "ms", Fit: text.Above}}}
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
	cells = append(cells, unit.InMilliseconds(s.Min), unit.InMilliseconds(s.Median.Value), s.Median.Bounded().Bounds(unit.InMilliseconds))
	for _, q := range latency.Quantiles {
		text := "-"
		if ns, known := s.Quantiles[q.Name]; known {
			text = unit.InMilliseconds(ns)
		}
		cells = append(cells, text)
	}
	return append(cells, unit.InMilliseconds(s.Max))
}

// timeline shows the median of each tenth of the time.
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
				text = unit.InMilliseconds(ns)
			}
			cells = append(cells, text)
		}
		t.Rows = append(t.Rows, cells)
	}
	return t
}
