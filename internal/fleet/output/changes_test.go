package output

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// TestChanges: the first run is shown whole, folded; of each later one only what differs, once for
// all hosts with the same change. A host that was lost and comes back with the same output is only
// said to be back.
func TestChanges(t *testing.T) {
	var o, e bytes.Buffer
	c := &changes{opt: gatherOptions{Out: &o, Err: &e}}
	stopped := exited(0, "a", -1)
	stopped.Class, stopped.Err = fleet.Cancelled, "interrupted"
	for i, run := range []struct {
		steps            []any
		wantOut, wantErr string
	}{
		{[]any{out(0, "a", "one\ntwo\n"), out(1, "b", "one\ntwo\n"), stderr(1, "b", "warn\n"), exited(0, "a", 0), exited(1, "b", 0), exited(2, "c", 0)},
			rule + "\na,b (2)\n" + rule + "\n| one\n| two\n" + rule + "\nc (1), no standard output\n" + rule + "\n",
			rule + "\nb (1), standard error\n" + rule + "\n| warn\n"},
		{[]any{out(0, "a", "one\ntwo\n"), out(1, "b", "one\ntwo\n"), stderr(1, "b", "warn\n"), exited(0, "a", 0), exited(1, "b", 0), exited(2, "c", 0)}, "", ""},
		{[]any{out(0, "a", "one\n2\n"), out(1, "b", "one\n2\n"), exited(0, "a", 0), exited(1, "b", 3), refused(2, "c")},
			rule + "\na,b (2), at 10:00:02\n" + rule + "\n@@ -1,2 +1,2 @@\n|   one\n| - two\n| + 2\n",
			rule + "\nb (1), standard error, at 10:00:02\n" + rule + "\n@@ -1,1 +0,0 @@\n| - warn\nb (1) =: at 10:00:02: exit 3\nc (1) =: at 10:00:02: unreachable: connection refused\n"},
		{[]any{refused(0, "a"), out(1, "b", "other\n"), exited(1, "b", 3), exited(2, "c", 0)},
			rule + "\nb (1), at 10:00:03\n" + rule + "\n| other\n",
			"a (1) =: at 10:00:03: unreachable: connection refused\nc (1) =: at 10:00:03: ok again\n"},
		{[]any{out(0, "a", "one\n2\n"), out(1, "b", "other\n"), exited(0, "a", 0), exited(1, "b", 3), exited(2, "c", 0)},
			"", "a (1) =: at 10:00:04: ok again\n"},
		{[]any{stopped, out(1, "b", "other\n"), exited(1, "b", 3), exited(2, "c", 0)}, "", ""},
	} {
		o.Reset()
		e.Reset()
		if err := c.Begin(fleet.Start{Time: time.Date(2026, 1, 1, 10, 0, i, 0, time.Local), Hosts: []host.Host{{Name: "a"}, {Name: "b"}, {Name: "c"}}}); err != nil {
			t.Fatal(err)
		}
		play(t, c, run.steps...)
		if err := c.End(fleet.Summary{}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(run.wantOut, o.String()) + cmp.Diff(run.wantErr, e.String()); diff != "" {
			t.Errorf("run %d (-want +got):\n%s", i, diff)
		}
	}
}
