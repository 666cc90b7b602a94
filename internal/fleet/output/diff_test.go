package output

import (
	"bytes"
	"strings"
	"testing"

	"sshpace/internal/fleet"
)

func TestGatherDiff(t *testing.T) {
	const alike = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n"
	for host, want := range map[string]string{
		"": rule + "\nweb[1-2] (2)\n" + rule + "\n| a\n" + strings.ReplaceAll("| "+alike, "\n", "\n| ") + "b\n" + rule + "\nweb3 (1), against web[1-2]\n" + rule +
			"\n@@ -1,6 +1,7 @@\n|   a\n|   1\n|   2\n| + new\n|   3\n|   4\n|   5\n@@ -9,4 +10,4 @@\n|   8\n|   9\n|   10\n| - b\n| + - c\n",
		"web3": rule + "\nweb3 (1)\n" + rule,
	} {
		var o, errs bytes.Buffer
		g := newGather(gatherOptions{Out: &o, Err: &errs, Diff: true, DiffHost: host})
		play(t, g, out(0, "web1", "a\n"+alike+"b\n"), out(1, "web2", "a\n"+alike+"b\n"), out(2, "web3", "a\n1\n2\nnew\n"+alike[4:]+"- c\n"),
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
