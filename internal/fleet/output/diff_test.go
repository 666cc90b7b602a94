package output

import (
	"bytes"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sshpace/internal/fleet"
)

// A difference leads from one text to the other, and is no longer than to take
// all of one away and add all of the other.
func TestDiffLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"a", "b", "c", ""})
		from, to := rapid.SliceOfN(line, 0, 30).Draw(t, "from"), rapid.SliceOfN(line, 0, 30).Draw(t, "to")
		edits, ok := diffLines(from, to)
		var before, after []string
		changes := 0
		for _, e := range edits {
			if e.kind != '+' {
				before = append(before, e.text)
			}
			if e.kind != '-' {
				after = append(after, e.text)
			}
			if e.kind != ' ' {
				changes++
			}
		}
		if !ok || strings.Join(before, "\n") != strings.Join(from, "\n") || strings.Join(after, "\n") != strings.Join(to, "\n") || len(before) != len(from) || len(after) != len(to) {
			t.Fatalf("%q -> %q: %v", from, to, edits)
		}
		if most := len(from) + len(to) - 2*common(from, to); changes != most {
			t.Fatalf("%q -> %q: %d changes, %d would do", from, to, changes, most)
		}
	})
}

// common is the length of the longest common subsequence, the slow way.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for i := range a {
		diagonal := 0
		for j := range b {
			above := row[j+1]
			if a[i] == b[j] {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(row[j], above)
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func TestGatherDiff(t *testing.T) {
	long := strings.Repeat("same\n", 10)
	for host, want := range map[string]string{
		"": rule + "\nweb[1-2] (2)\n" + rule + "\n| a\n" + strings.Repeat("| same\n", 10) + "| b\n" + rule + "\nweb3 (1), against web[1-2]\n" + rule +
			"\n|   a\n|   same\n|   same\n| + new\n|   same\n|   same\n[4 lines in common]\n|   same\n|   same\n| - b\n| + - c\n",
		"web3": rule + "\nweb3 (1)\n" + rule,
	} {
		var o, errs bytes.Buffer
		g := newGather(gatherOptions{Out: &o, Err: &errs, Diff: true, DiffHost: host})
		play(t, g, out(0, "web1", "a\n"+long+"b\n"), out(1, "web2", "a\n"+long+"b\n"), out(2, "web3", "a\nsame\nsame\nnew\n"+long[10:]+"- c\n"),
			exited(0, "web1", 0), exited(1, "web2", 0), exited(2, "web3", 0))
		if err := g.End(fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		if host == "" && o.String() != want || !strings.HasPrefix(o.String(), want) {
			t.Errorf("%q:\n%s\nwant\n%s", host, o.String(), want)
		}
	}
}

// What is too different is shown whole.
func TestGatherDiffGivesUp(t *testing.T) {
	var o, errs bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: &errs, Diff: true})
	play(t, g, out(0, "a", strings.Repeat("x\n", 2000)), out(1, "b", strings.Repeat("y\n", 2000)), exited(0, "a", 0), exited(1, "b", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if strings.Count(o.String(), "| y\n") != 2000 || strings.Contains(o.String(), "against") {
		t.Errorf("%.200s", o.String())
	}
}
