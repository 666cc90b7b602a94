package latency_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sshpace/internal/measure/ping"
	"sshpace/internal/show/latency"
)

// summary is of bytes that took from 1 to 99 seconds.
func summary(lane string, loaded bool, back int) ping.Summary {
	s := ping.Summary{
		Lane: lane, Loaded: loaded, Sent: 12345, Back: back, Min: int64(time.Second), Max: 99 * int64(time.Second),
		Quantiles: map[string]int64{}, Median: ping.Interval{Value: 12 * int64(time.Second)},
	}
	if back > 5 {
		s.Median.Lo, s.Median.Hi = 11*int64(time.Second), 13*int64(time.Second)
	}
	for _, q := range ping.Quantiles {
		s.Quantiles[q.Name] = 98 * int64(time.Second)
	}
	for range 10 {
		s.Timeline = append(s.Timeline, 12*int64(time.Second))
	}
	return s
}

// TestText: the summary fits a terminal however long bytes take, and few bytes have
// no interval.
func TestText(t *testing.T) {
	r := &latency.Report{Target: "host", Notes: []string{strings.Repeat("a word of a note ", 10)}, Result: &ping.Result{}}
	for _, lane := range ping.Lanes() {
		r.Lanes = append(r.Lanes, summary(lane, false, 5), summary(lane, true, 12345))
	}
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("%d characters: %s", n, line)
		}
		if of, _, _ := strings.Cut(line, " "); of == "pty" && strings.Contains(line, "12345") && strings.Contains(line, "±") != strings.Contains(line, "loaded") {
			t.Errorf("an interval of few bytes, or none of many: %s", line)
		}
	}
	if n := strings.Count(text.String(), "tenth of the time"); n != 1 {
		t.Errorf("%d headings of the time:\n%s", n, &text)
	}
}
