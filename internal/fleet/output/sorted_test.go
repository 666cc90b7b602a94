package output

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
)

// finished is a host that ended well or with a code, after some time.
func finished(index int, name string, exit int, took time.Duration) fleet.Result {
	r := exited(index, name, exit)
	r.Elapsed, r.Attempts = took, 1
	return r
}

func TestSorted(t *testing.T) {
	for order, want := range map[order]string{byHost: "a b c d", byExit: "b c a d", byTime: "c a d b"} {
		var text bytes.Buffer
		s := newSorted(newPrefix(prefixOptions{Out: &text, Err: &text}), order, false)
		s.store.Limit, s.store.Dir = 1, t.TempDir() // all of it goes through the file
		long := strings.Repeat("x", 64<<10) + "\n"
		play(t, s, out(1, "b", "first\n"), out(0, "a", long), stderr(1, "b", "bad\n"), out(1, "b", "last\n"), out(2, "c", "only\n"), out(3, "d", "half"),
			finished(1, "b", 0, 9*time.Second), finished(2, "c", 1, time.Second), refusedAfter(3, "d", 3*time.Second), finished(0, "a", 7, 2*time.Second))
		if text.Len() > 0 {
			t.Fatalf("%s: written before the end: %q", order, &text)
		}
		if err := s.End(fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		var names []string
		for line := range strings.Lines(text.String()) {
			if name, _, _ := strings.Cut(line, " "); len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: %s, want %s", order, got, want)
		}
		if !strings.Contains(text.String(), "b -> first\nb => bad\nb -> last\n") {
			t.Errorf("%s: a host's lines are not in their order: %q", order, &text)
		}
	}
}

func refusedAfter(index int, name string, took time.Duration) fleet.Result {
	r := refused(index, name)
	r.Elapsed, r.Attempts = took, 1
	return r
}

func TestTable(t *testing.T) {
	var shown bytes.Buffer
	s := newTable(&shown, 40)
	play(t, s, out(0, "web1", "one\ntwo\n\n"), out(1, "web2", "so far\n"), stderr(1, "web2", "\x1b]0;evil\x07bad end\n"), out(2, "web3", strings.Repeat("世", 40)),
		finished(0, "web1", 0, 210*time.Millisecond), finished(1, "web2", 3, time.Second), finished(2, "web3", 0, time.Minute), refused(3, "web4"))
	if err := s.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := `HOST  END        TIME  LINES  LAST
web1  ok        0.21s      3  two
web2  exit 3    1.00s      2  bad end
web3  ok       60.00s      1  ` + strings.Repeat("世", 4) + `…
web4  refused   0.00s      0  connecti…
`
	if got := shown.String(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestGroupByExit(t *testing.T) {
	var text, errs bytes.Buffer
	g := newGather(gatherOptions{Out: &text, Err: &errs, ByEnd: true})
	play(t, g, out(0, "a", "same\n"), out(1, "b", "same\n"), out(2, "c", "same\n"), exited(0, "a", 0), exited(1, "b", 3), exited(2, "c", 0), exited(3, "d", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if want := rule + "\na,c (2), exit 0\n" + rule + "\n| same\n" + rule + "\nb (1), exit 3\n" + rule + "\n| same\n" +
		rule + "\nd (1), exit 0, no standard output\n" + rule + "\n"; text.String() != want {
		t.Errorf("%s\nwant\n%s", &text, want)
	}
	if want := "a,c-d (3) =: exit 0\nb (1) =: exit 3\n"; errs.String() != want && errs.String() != "a,c,d (3) =: exit 0\nb (1) =: exit 3\n" {
		t.Errorf("%q, want %q", &errs, want)
	}
}

// The view shows who runs longest, clean and within the width.
func TestRunningHosts(t *testing.T) {
	now := time.Now()
	r := running{}
	var hosts []host.Host
	for i := range 9 {
		hosts = append(hosts, host.Host{Name: "web" + string(rune('0'+i))})
	}
	r.begin(fleet.Start{Hosts: hosts})
	for i := range 8 {
		r.started(i, now.Add(time.Duration(i-20)*time.Second))
	}
	r.started(8, now)
	r.said(fleet.Event{Index: 0, Data: []byte("old\n\x1b[2Jlast of all " + strings.Repeat("y", 100) + "\r\n\n")})
	r.said(fleet.Event{Index: 1, Data: []byte(strings.Repeat("世", 100))})
	lines := r.lines(now, 60)
	if len(lines) != maxRunning+1 || lines[maxRunning] != "  and 3 more" {
		t.Fatalf("%q", lines)
	}
	if !strings.HasPrefix(lines[0], "  web0   20s  last of all yyy") || strings.Contains(lines[0], "\x1b") || text.Width(lines[0]) != 59 {
		t.Errorf("%q has %d columns", lines[0], text.Width(lines[0]))
	}
	if n := strings.Count(lines[1], "世"); n == 0 || 2*n > 60-14 {
		t.Errorf("%d wide characters in %q", n, lines[1])
	}
}
