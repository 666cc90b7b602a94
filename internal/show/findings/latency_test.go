package findings_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/latency"
	"sshpace/internal/show/findings"
)

// summary is of bytes that took from 1 to 99 seconds.
func summary(lane string, loaded bool, back int) latency.Summary {
	s := latency.Summary{
		Lane: lane, Loaded: loaded, Sent: 12345, Back: back, Min: int64(time.Second), Max: 99 * int64(time.Second),
		Quantiles: map[string]int64{}, Median: stats.Interval{Value: 12e9},
	}
	if back > 5 {
		s.Median.Lo, s.Median.Hi, s.Median.N = 11e9, 13e9, 200
	}
	for _, q := range latency.Quantiles {
		s.Quantiles[q.Name] = 98 * int64(time.Second)
	}
	for range 10 {
		s.Timeline = append(s.Timeline, 12*int64(time.Second))
	}
	return s
}

// TestText: the summary fits a terminal however long bytes take, and few bytes have no interval.
func TestText(t *testing.T) {
	for _, width := range []int{0, 60, 77, 78, 200} {
		t.Run(fmt.Sprint(width), func(t *testing.T) { fits(t, width) })
	}
}

// fits checks the summary on a terminal of width; 0 is none.
func fits(t *testing.T, width int) {
	most := 80
	if width > 0 {
		most = min(width, 80)
	}
	r := &findings.Latency{Target: "host", Notes: []string{strings.Repeat("a word of a note ", 10)}, Result: &latency.Result{}}
	for _, lane := range latency.Lanes() {
		r.Lanes = append(r.Lanes, summary(lane, false, 5), summary(lane, true, 12345))
	}
	var text strings.Builder
	if err := r.Text(&text, width); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > most {
			t.Errorf("%d characters: %s", n, line)
		}
	}
	if n := strings.Count(text.String(), "(1"); n != len(latency.Lanes()) {
		t.Errorf("%d intervals: many bytes have one, few have none:\n%s", n, &text)
	}
	if n := strings.Count(text.String(), "tenth of the time"); n != 1 {
		t.Errorf("%d headings of the time:\n%s", n, &text)
	}
}

// TestSkewedInterval: what stands behind ± reaches the farther end of the interval.
func TestSkewedInterval(t *testing.T) {
	s := summary("pty", false, 100)
	s.Median = stats.Interval{Value: 10e6, Lo: 9e6, Hi: 15e6, N: 200}
	r := &findings.Latency{Target: "host", Result: &latency.Result{Lanes: []latency.Summary{s}}}
	var text strings.Builder
	if err := r.Text(&text, 0); err != nil || !strings.Contains(text.String(), "10.0 (9.00-15.0)") {
		t.Errorf("%v\n%s", err, &text)
	}
}
