//go:build linux

package main

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

// losses is until when launchers were lost for the last time: killed, or silent for longer than a
// lease.
type losses map[string]time.Time

// judge compares the report of a job with all that its hosts saw. stopped says that somebody
// stopped it. It returns nothing where both agree.
func judge(hosts []string, seen map[string]host, t told, lost losses, stopped bool) (faults []string) {
	counts, known := map[string]int{"ok": 0, "failed": 0, "unreachable": 0, "not_started": 0}, 0
	for _, address := range hosts {
		h, rec := seen[address], t.hosts[address]
		if len(h.starts) > 1 {
			faults = append(faults, fmt.Sprintf("%s: it was run twice, by %v", address, h.starts))
		}
		if rec == nil || len(rec.results) != 1 {
			faults = append(faults, fmt.Sprintf("%s: it has no single result, but %+v; it saw %v", address, rec, h.starts))
			continue
		}
		r, output := &rec.results[0], rec.output.String()
		known++
		counts[r.Status]++
		if why := wrong(h, r, output, lost, stopped); why != "" {
			faults = append(faults, fmt.Sprintf("%s: %s: it saw %v, %v, ended %v; the report has %+v and %d bytes", address, why, h.starts, h.answer, !h.ended.IsZero(), *r, len(output)))
		}
	}
	if known < len(t.hosts) {
		faults = append(faults, fmt.Sprintf("%d hosts are reported, %d of them are in the job, with a result", len(t.hosts), known))
	}
	if fmt.Sprint(counts) != fmt.Sprint(t.counts) {
		faults = append(faults, fmt.Sprintf("the summary has %v, the results are %v", t.counts, counts))
	}
	return faults
}

// wrong is why a verdict is wrong, "" if it is right.
func wrong(h host, r *result, output string, lost losses, stopped bool) string {
	var by start
	if len(h.starts) > 0 {
		by = h.starts[0]
	}
	ended := stopped && r.Class == "cancelled" // by us
	switch {
	case !strings.HasPrefix(h.answer.output, output) || r.Incomplete != "":
		return "other output"
	case r.Ran == "no" && by.by != "":
		return "it ran"
	case r.Ran == "no" && !ended && !(r.Class == "local" && !lost[r.Launcher].IsZero()): // which slept while it asked ssh
		return "nothing kept it from running"
	case r.Ran == "no":
	case r.Ran == "unknown" && !ended && (by.by == "" && len(lost) == 0 || by.by != "" && by.at.After(lost[by.by])):
		return "its launcher was not lost"
	case r.Ran == "unknown":
	case by.by == "":
		return "it never ran"
	case cmp.Or(r.Launcher, direct) != by.by:
		return "another launcher ran it"
	case ended:
	case r.Class != "" || h.ended.IsZero() || string(r.Exit) != strconv.Itoa(h.answer.exit):
		return "it ended otherwise"
	case output != h.answer.output:
		return "output is missing"
	case (r.Status == "ok") != (h.answer.exit == 0):
		return "another status"
	}
	return ""
}

// lines are those of host h, as a client writes it.
func lines(result string, output ...string) string {
	var b strings.Builder
	fmt.Fprintln(&b, `{"type":"run","hosts":1}`)
	for _, line := range output {
		fmt.Fprintf(&b, `{"type":"output","host":"h","stream":"stdout","text":%q}`+"\n", line)
	}
	fmt.Fprintf(&b, `{"type":"result","host":"h",%s}`+"\n", result)
	return b.String()
}

func summary(status string) string { return fmt.Sprintf(`{"type":"summary",%q:1}`+"\n", status) }

// A judge that cannot condemn is none: every wrong record is found, and no right one.
func TestJudge(t *testing.T) {
	now := time.Now()
	ran := func(by ...string) *host {
		h := &host{answer: answer{output: "a\nb\n", exit: 3}, ended: now}
		for _, name := range by {
			h.starts = append(h.starts, start{name, now})
		}
		return h
	}
	begun := ran("l1")
	begun.ended = time.Time{}
	const failed = `"status":"failed","ran":"yes","exit":3,"launcher":"l1"`
	const unknown = `"status":"failed","ran":"unknown","class":"lost"`
	const waiting = `"status":"not_started","ran":"no","class":"cancelled"`
	const stopped = `"status":"failed","ran":"yes","class":"cancelled","launcher":"l1"`
	whole := lines(failed, "a", "b") + summary("failed")
	before, after := losses{"l1": now.Add(-time.Second)}, losses{"l1": now.Add(time.Second)}
	for _, tt := range []struct {
		name    string
		seen    *host
		said    string
		lost    losses
		stopped bool
		want    string
	}{
		{"right", ran("l1"), whole, nil, false, ""},
		{"twice by two", ran("l1", "l2"), whole, nil, false, "run twice"},
		{"twice by one", ran("l1", "l1"), whole, nil, false, "run twice"},
		{"no result", ran("l1"), summary("failed"), nil, false, "no single result"},
		{"two results", ran("l1"), lines(failed) + whole, nil, false, "no single result"},
		{"foreign host", ran("l1"), strings.ReplaceAll(whole, `"h"`, `"other"`), nil, false, "1 hosts are reported, 0 of them"},
		{"a line is missing", ran("l1"), lines(failed, "a") + summary("failed"), nil, false, "output is missing"},
		{"other output", ran("l1"), lines(failed, "a", "c") + summary("failed"), nil, false, "other output"},
		{"output twice", ran("l1"), lines(failed, "a", "b", "a", "b") + summary("failed"), nil, false, "other output"},
		{"other exit", ran("l1"), strings.Replace(whole, `"exit":3`, `"exit":4`, 1), nil, false, "ended otherwise"},
		{"no exit", ran("l1"), strings.Replace(whole, `"exit":3,`, ``, 1), nil, false, "ended otherwise"},
		{"not ended", begun, whole, nil, false, "ended otherwise"},
		{"other status", ran("l1"), strings.Replace(lines(failed, "a", "b"), "failed", "ok", 1) + summary("ok"), nil, false, "another status"},
		{"other launcher", ran("l2"), whole, nil, false, "another launcher"},
		{"never ran", nil, lines(failed) + summary("failed"), nil, false, "never ran"},
		{"other summary", ran("l1"), lines(failed, "a", "b") + summary("ok"), nil, false, "the summary"},
		{"no summary", ran("l1"), lines(failed, "a", "b"), nil, false, "the summary"},
		{"unknown, lost", begun, lines(unknown) + summary("failed"), after, false, ""},
		{"unknown, lost, not begun", nil, lines(unknown) + summary("failed"), after, false, ""},
		{"unknown, lost before", begun, lines(unknown) + summary("failed"), before, false, "not lost"},
		{"unknown, other lost", begun, lines(unknown) + summary("failed"), losses{"l2": now.Add(time.Second)}, false, "not lost"},
		{"unknown, none lost", nil, lines(unknown) + summary("failed"), nil, false, "not lost"},
		{"waiting, stopped", nil, lines(waiting) + summary("not_started"), nil, true, ""},
		{"waiting", nil, lines(waiting) + summary("not_started"), nil, false, "nothing kept"},
		{"a launcher that slept", nil, lines(`"status":"unreachable","ran":"no","class":"local","launcher":"l1"`) + summary("unreachable"), after, false, ""},
		{"a launcher that did not", nil, lines(`"status":"unreachable","ran":"no","class":"local","launcher":"l2"`) + summary("unreachable"), after, false, "nothing kept"},
		{"waiting, but ran", ran("l1"), lines(waiting) + summary("not_started"), nil, true, "it ran"},
		{"unreachable", nil, lines(`"status":"unreachable","ran":"no","class":"timeout"`) + summary("unreachable"), nil, true, "nothing kept"},
		{"ended by stop", begun, lines(stopped, "a") + summary("failed"), nil, true, ""},
		{"ended without stop", begun, lines(stopped) + summary("failed"), nil, false, "ended otherwise"},
		{"connection lost", begun, lines(`"status":"failed","ran":"yes","class":"lost","launcher":"l1"`) + summary("failed"), nil, false, "ended otherwise"},
	} {
		told, err := read(strings.NewReader(tt.said), func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]host{}
		if tt.seen != nil {
			seen["h"] = *tt.seen
		}
		got := strings.Join(judge([]string{"h"}, seen, told, tt.lost, tt.stopped), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if _, err := read(strings.NewReader("panic: it\n"), nil); err == nil {
		t.Error("what is no record is read")
	}
}
