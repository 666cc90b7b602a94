package knownhosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMeasureCost: a file of thousands of hashed names costs the real ssh more
// than a split one, whatever else the machine does.
func TestMeasureCost(t *testing.T) {
	var text strings.Builder
	for i := range 2500 {
		text.WriteString(fleetHost(i) + ",alias" + fleetHost(i) + " " + edLine(i%100) + "\n")
	}
	file := writeFile(t, text.String())
	before, _ := os.Stat(file)
	calls := 0
	cost, err := MeasureCost(t.Context(), file, CostOptions{Dir: t.TempDir(), Rounds: 6, Progress: func(int, int) { calls++ }})
	if err != nil {
		t.Fatal(err)
	}
	if after, _ := os.Stat(file); !after.ModTime().Equal(before.ModTime()) {
		t.Error("the file was written")
	}
	if cost.Lines != 2500 || cost.HashedLines != 0 || cost.Bytes != int64(text.Len()) || calls != 7 {
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
	if cost.Index.Names != 1000 || cost.Index.Load.Value <= 0 || cost.Index.Lookup.Value <= 0 {
		t.Errorf("index %+v", cost.Index)
	}
}

func TestLayoutsHoldTheSameLines(t *testing.T) {
	x := Open(writeFile(t, "a,b "+edLine(1)+"\n"+HashName("c")+" "+edLine(2)+"\n*.x "+edLine(3)+"\n"))
	dir := t.TempDir()
	layouts, err := writeLayouts(dir, x.files[0].current(), edKey(9).PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layouts {
		y := Open(l.file)
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
	if _, err := MeasureCost(t.Context(), filepath.Join(t.TempDir(), "missing"), CostOptions{Dir: t.TempDir()}); err == nil {
		t.Error("no error for a missing file")
	}
	file := writeFile(t, "a "+edLine(1)+"\n")
	_, err := MeasureCost(t.Context(), file, CostOptions{Dir: t.TempDir(), SSH: "/bin/false"})
	if err == nil || !strings.Contains(err.Error(), "/bin/false") {
		t.Errorf("error %v", err)
	}
}
