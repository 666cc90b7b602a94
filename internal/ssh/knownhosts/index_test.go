package knownhosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSeveralFilesKeepTheirOrder(t *testing.T) {
	user := writeFile(t, "a "+edLine(1)+"\n")
	system := writeFile(t, "b "+edLine(3)+"\na "+edLine(2)+"\n@revoked a "+edLine(3)+"\n")
	x := Open(user, filepath.Join(t.TempDir(), "missing"), system)
	var got []string
	for _, e := range x.Lookup("A", 22) {
		got = append(got, fmt.Sprintf("%s %s", e.Where(), e.Marker))
	}
	want := []string{user + ":1 ", system + ":2 ", system + ":3 @revoked"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if problems := x.Problems(); len(problems) != 0 {
		t.Errorf("a missing file is a problem: %v", problems)
	}
}

func TestUnreadableFileIsAProblem(t *testing.T) {
	x := Open(t.TempDir())
	if got := x.Lookup("a", 0); got != nil {
		t.Errorf("found %v in a directory", got)
	}
	if problems := x.Problems(); len(problems) != 1 || !strings.Contains(problems[0].Error(), "not a regular file") {
		t.Errorf("problems: %v", problems)
	}
}

// countedTable is the table behind the only file of x.
func countedTable(x *Index) *table { return x.files[0].current() }

func TestHashedLinesAreTriedOncePerName(t *testing.T) {
	x := Open(writeFile(t, fleetFile(50, true)))
	for range 3 {
		for i := range 60 { // ten of them unknown
			if found := x.Lookup(fleetHost(i), 22); (len(found) == 1) != (i < 50) {
				t.Fatalf("%s: %d lines", fleetHost(i), len(found))
			}
		}
	}
	if passes := countedTable(x).passes.Load(); passes != 60 {
		t.Errorf("%d passes over the hashed lines for 60 names", passes)
	}
}

func TestManyAskersShareOnePass(t *testing.T) {
	x := Open(writeFile(t, fleetFile(500, true)))
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if found := x.Lookup(fleetHost(499), 22); len(found) != 1 {
				t.Errorf("%d lines", len(found))
			}
		})
	}
	wg.Wait()
	if passes := countedTable(x).passes.Load(); passes != 1 {
		t.Errorf("%d passes for one name", passes)
	}
}

func TestWarmIsOnePassForAllNames(t *testing.T) {
	x := Open(writeFile(t, "b,*.y "+edLine(1)+"\n"+fleetFile(50, true)))
	names := []string{"B"}
	for i := range 60 {
		names = append(names, fleetHost(i), fleetHost(i))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { x.Warm(t.Context(), names) })
	}
	wg.Wait()
	for i := range 60 {
		if found := x.Lookup(fleetHost(i), 22); (len(found) == 1) != (i < 50) {
			t.Fatalf("%s: %d lines", fleetHost(i), len(found))
		}
	}
	if len(x.Lookup("b", 0)) != 1 {
		t.Error("plain line lost")
	}
	if passes := countedTable(x).passes.Load(); passes != 1 {
		t.Errorf("%d passes, want 1", passes)
	}
}

func TestChangesAreSeen(t *testing.T) {
	file := writeFile(t, "a "+edLine(1)+"\n")
	x := Open(file)
	expect := func(step string, want map[string]int) {
		t.Helper()
		for name, n := range want {
			if got := len(x.Lookup(name, 0)); got != n {
				t.Errorf("%s: %d lines for %s, want %d", step, got, name, n)
			}
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	expect("start", map[string]int{"a": 1, "b": 0})
	write("b " + edLine(1) + "\n")
	if err := os.Chtimes(file, time.Time{}, time.Unix(1e9, 0)); err != nil { // same size, another time
		t.Fatal(err)
	}
	expect("rewritten in place", map[string]int{"a": 0, "b": 1})
	write("c " + edLine(1) + "\nb " + edLine(1) + "\n")
	expect("longer, but not appended to", map[string]int{"c": 1, "b": 1, "a": 0})
	replacement := writeFile(t, "d "+edLine(1)+"\nb "+edLine(1)+"\n")
	if err := os.Rename(replacement, file); err != nil {
		t.Fatal(err)
	}
	expect("replaced", map[string]int{"d": 1, "c": 0, "b": 1})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("removed", map[string]int{"d": 0, "b": 0})
	write("e " + edLine(1))
	expect("back", map[string]int{"e": 1})
	write("e " + edLine(1) + " more\nf " + edLine(2))
	expect("last line went on", map[string]int{"e": 1, "f": 1})
}

func TestAppendedLinesCostNoNewPass(t *testing.T) {
	file := writeFile(t, fleetFile(100, true))
	x := Open(file)
	for i := range 100 {
		x.Lookup(fleetHost(i), 22)
	}
	for i := 100; i < 110; i++ {
		if err := Append(file, fleetHost(i), 22, edKey(i).PublicKey(), i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if found := x.Lookup(fleetHost(i), 22); len(found) != 1 || found[0].Line != i+1 || found[0].Hashed != (i%2 == 0) {
			t.Fatalf("%s after Append: %+v", fleetHost(i), found)
		}
	}
	before := countedTable(x)
	if found := x.Lookup(fleetHost(3), 22); len(found) != 1 {
		t.Error("an old line is lost")
	}
	if after := countedTable(x); after != before || len(after.text) != 11 {
		t.Errorf("the file was read anew: %d pieces, want 11", len(after.text))
	}
}

func TestConcurrentLookupsAndAppends(t *testing.T) {
	file := writeFile(t, fleetFile(200, true))
	x := Open(file)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			if err := Append(file, fmt.Sprintf("new%d", i), 2222, edKey(i).PublicKey(), false); err != nil {
				t.Error(err)
			}
			if found := x.Lookup(fmt.Sprintf("new%d", i), 2222); len(found) != 1 {
				t.Errorf("new%d: %d lines right after Append", i, len(found))
			}
		})
		wg.Go(func() {
			if found := x.Lookup(fleetHost(i), 22); len(found) != 1 {
				t.Errorf("%s: %d lines", fleetHost(i), len(found))
			}
		})
	}
	wg.Wait()
}

func TestWarmStops(t *testing.T) {
	x := Open(writeFile(t, fleetFile(50, true)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.Warm(ctx, []string{fleetHost(1), fleetHost(2)})
	if found := x.Lookup(fleetHost(1), 22); len(found) != 1 {
		t.Errorf("after a Warm that was stopped: %d lines", len(found))
	}
}
