package hostkeys

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/sched"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// TestMeasureCost: a file of thousands of hashed names costs the real ssh more than a split one,
// whatever else the machine does.
func TestMeasure(t *testing.T) {
	var text strings.Builder
	for i := range 2500 {
		text.WriteString(sshtest.FleetHost(i) + ",alias" + sshtest.FleetHost(i) + " " + sshtest.KeyText(i%100) + "\n")
	}
	file := sshtest.KnownHostsFile(t, text.String())
	before, _ := os.Stat(file)
	calls := 0
	cost, err := Measure(t.Context(), file, Options{Dir: t.TempDir(), Rounds: sched.Rounds{Count: 6}, Progress: func(int, int) { calls++ }})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(file); !after.ModTime().Equal(before.ModTime()) {
		t.Error("the file was written")
	}
	if cost.Lines != 2500 || cost.HashedLines != 0 || cost.Bytes != int64(text.Len()) || calls != 6 {
		t.Errorf("cost %+v after %d calls", cost, calls)
	}
	var rows []string
	for _, c := range cost.OpenSSH {
		rows = append(rows, c.Layout)
		if c.CPU.Value <= 0 || c.CPU.N != 6 || c.AsItIs != (c.Layout == "plain") {
			t.Errorf("row %+v", c)
		}
		if c.Layout == "hashed" && c.Extra.Lo <= 0 {
			t.Errorf("5000 hashed names cost nothing: %+v", c.Extra)
		}
	}
	if diff := cmp.Diff([]string{"split", "plain", "hashed", "split", "plain", "hashed"}, rows); diff != "" {
		t.Error(diff)
	}
	if cost.Names != 1000 || cost.Load.Value <= 0 || cost.Lookup.Value <= 0 {
		t.Errorf("index %+v", cost.IndexCost)
	}
}

func TestLayoutsHoldTheSameLines(t *testing.T) {
	x := index.Open(sshtest.KnownHostsFile(t, "a,b "+sshtest.KeyText(1)+"\n"+knownhosts.HashName("c")+" "+sshtest.KeyText(2)+"\n*.x "+sshtest.KeyText(3)+"\n"))
	dir := t.TempDir()
	layouts, err := writeLayouts(dir, x.Tables()[0], sshtest.Key(9).PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layouts {
		y := index.Open(l.file)
		wantA := 1
		if l.name == "split" {
			wantA = 0
		}
		if len(y.Lookup("a", 0)) != wantA || len(y.Lookup("b", 0)) != wantA || len(y.Lookup("q.x", 0)) != wantA || len(y.Lookup(benchName, 0)) != 1 {
			text, _ := os.ReadFile(filepath.Join(dir, l.name))
			t.Errorf("%s holds %q", l.name, text)
		}
	}
}

func TestMeasureCostSaysWhatFailed(t *testing.T) {
	if _, err := Measure(t.Context(), filepath.Join(t.TempDir(), "missing"), Options{Dir: t.TempDir()}); err == nil {
		t.Error("no error for a missing file")
	}
	file := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n")
	_, err := Measure(t.Context(), file, Options{Dir: t.TempDir(), SSH: "/bin/false"})
	if err == nil || !strings.Contains(err.Error(), "/bin/false") {
		t.Errorf("error %v", err)
	}
}
