package index

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/sshtest"
)

func TestSeveralFilesKeepTheirOrder(t *testing.T) {
	user := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n")
	system := sshtest.KnownHostsFile(t, "b "+sshtest.KeyText(3)+"\na "+sshtest.KeyText(2)+"\n@revoked a "+sshtest.KeyText(3)+"\n")
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
func countedTable(x *Index) *Table { return x.files[0].current() }

func TestHashedLinesAreTriedOncePerName(t *testing.T) {
	x := Open(sshtest.KnownHostsFile(t, sshtest.FleetFile(50, true)))
	for range 3 {
		for i := range 60 { // ten of them unknown
			if found := x.Lookup(sshtest.FleetHost(i), 22); (len(found) == 1) != (i < 50) {
				t.Fatalf("%s: %d lines", sshtest.FleetHost(i), len(found))
			}
		}
	}
	if passes := countedTable(x).passes.Load(); passes != 60 {
		t.Errorf("%d passes over the hashed lines for 60 names", passes)
	}
}

func TestManyAskersShareOnePass(t *testing.T) {
	x := Open(sshtest.KnownHostsFile(t, sshtest.FleetFile(500, true)))
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			if found := x.Lookup(sshtest.FleetHost(499), 22); len(found) != 1 {
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
	x := Open(sshtest.KnownHostsFile(t, "b,*.y "+sshtest.KeyText(1)+"\n"+sshtest.FleetFile(50, true)))
	names := []string{"B"}
	for i := range 60 {
		names = append(names, sshtest.FleetHost(i), sshtest.FleetHost(i))
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { x.Warm(t.Context(), names) })
	}
	wg.Wait()
	for i := range 60 {
		if found := x.Lookup(sshtest.FleetHost(i), 22); (len(found) == 1) != (i < 50) {
			t.Fatalf("%s: %d lines", sshtest.FleetHost(i), len(found))
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
	file := sshtest.KnownHostsFile(t, "a "+sshtest.KeyText(1)+"\n")
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
	write("b " + sshtest.KeyText(1) + "\n")
	if err := os.Chtimes(file, time.Time{}, time.Unix(1e9, 0)); err != nil { // same size, another time
		t.Fatal(err)
	}
	expect("rewritten in place", map[string]int{"a": 0, "b": 1})
	write("c " + sshtest.KeyText(1) + "\nb " + sshtest.KeyText(1) + "\n")
	expect("longer, but not appended to", map[string]int{"c": 1, "b": 1, "a": 0})
	replacement := sshtest.KnownHostsFile(t, "d "+sshtest.KeyText(1)+"\nb "+sshtest.KeyText(1)+"\n")
	if err := os.Rename(replacement, file); err != nil {
		t.Fatal(err)
	}
	expect("replaced", map[string]int{"d": 1, "c": 0, "b": 1})
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	expect("removed", map[string]int{"d": 0, "b": 0})
	write("e " + sshtest.KeyText(1))
	expect("back", map[string]int{"e": 1})
	write("e " + sshtest.KeyText(1) + " more\nf " + sshtest.KeyText(2))
	expect("last line went on", map[string]int{"e": 1, "f": 1})
}

// Under a Lag files are looked at now and then, and whenever it matters.
func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := sshtest.KnownHostsFile(t, "")
		x := Open(file)
		x.Lag = time.Second
		lines := 0
		expect := func(step string, want int) {
			t.Helper()
			if got := len(x.Lookup("a", 0)); got != want {
				t.Errorf("%s: %d lines, want %d", step, got, want)
			}
			lines++
			if err := os.WriteFile(file, []byte(strings.Repeat("a "+sshtest.KeyText(1)+"\n", lines)), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		expect("first look", 0)
		expect("within the lag", 0)
		time.Sleep(x.Lag + time.Millisecond)
		expect("after the lag", 2)
		expect("within the next lag", 2)
		x.Expire()
		expect("expired", 4)
	})
}

func TestAppendedLinesCostNoNewPass(t *testing.T) {
	file := sshtest.KnownHostsFile(t, sshtest.FleetFile(100, true))
	x := Open(file)
	for i := range 100 {
		x.Lookup(sshtest.FleetHost(i), 22)
	}
	for i := 100; i < 110; i++ {
		appendLine(t, file, hashedIf(i%2 == 0, knownhosts.HostPort(sshtest.FleetHost(i), 22)), i)
		if found := x.Lookup(sshtest.FleetHost(i), 22); len(found) != 1 || found[0].Line != i+1 || found[0].Hashed != (i%2 == 0) {
			t.Fatalf("%s after it was added: %+v", sshtest.FleetHost(i), found)
		}
	}
	before := countedTable(x)
	if found := x.Lookup(sshtest.FleetHost(3), 22); len(found) != 1 {
		t.Error("an old line is lost")
	}
	if after := countedTable(x); after != before || len(after.text) != 11 {
		t.Errorf("the file was read anew: %d pieces, want 11", len(after.text))
	}
}

func TestConcurrentLookupsAndAppends(t *testing.T) {
	file := sshtest.KnownHostsFile(t, sshtest.FleetFile(200, true))
	x := Open(file)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			appendLine(t, file, knownhosts.HostPort(fmt.Sprintf("new%d", i), 2222), i)
			if found := x.Lookup(fmt.Sprintf("new%d", i), 2222); len(found) != 1 {
				t.Errorf("new%d: %d lines right after it was added", i, len(found))
			}
		})
		wg.Go(func() {
			if found := x.Lookup(sshtest.FleetHost(i), 22); len(found) != 1 {
				t.Errorf("%s: %d lines", sshtest.FleetHost(i), len(found))
			}
		})
	}
	wg.Wait()
}

func TestWarmStops(t *testing.T) {
	x := Open(sshtest.KnownHostsFile(t, sshtest.FleetFile(50, true)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	x.Warm(ctx, []string{sshtest.FleetHost(1), sshtest.FleetHost(2)})
	if found := x.Lookup(sshtest.FleetHost(1), 22); len(found) != 1 {
		t.Errorf("after a Warm that was stopped: %d lines", len(found))
	}
}

func hashedIf(hash bool, name string) string {
	if hash {
		return knownhosts.HashName(name)
	}
	return name
}

// appendLine adds a line to a file, as ssh does.
func appendLine(t *testing.T, file, name string, key int) {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString(name + " " + sshtest.KeyText(key) + "\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

func TestUnreadable(t *testing.T) {
	key := sshtest.KeyText(1)
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"good " + key,                         // 1
		"",                                    //
		"# comment",                           //
		"nokey",                               // 4
		"@sometimes a " + key,                 // 5
		"@revoked @revoked a " + key,          // 6
		"|1|AAAA|BBBB " + key,                 // 7
		"a ssh-rsa " + strings.Fields(key)[1], // 8
		"a ssh-ed25519 !!!!",                  // 9
		"crlf " + key + "\r",                  // 10
		"a " + key[:40],                       // 11
		"@revoked",                            // 12
		"\t  indented\t" + key + "\tcomment",  // 13
		"crs " + key + "\r\r\r",               // 14
	}, "\n"))
	x := Open(file)
	var lines []int
	for _, bad := range x.Unreadable() {
		if bad.File != file || bad.Reason == "" {
			t.Errorf("incomplete: %+v", bad)
		}
		lines = append(lines, bad.Line)
	}
	if diff := cmp.Diff([]int{4, 5, 6, 7, 8, 9, 11, 12}, lines); diff != "" {
		t.Error(diff)
	}
	for name, line := range map[string]int{"good": 1, "crlf": 10, "indented": 13, "crs": 14} {
		if got := x.Lookup(name, 22); len(got) != 1 || got[0].Line != line {
			t.Errorf("%s: %+v, want line %d", name, got, line)
		}
	}
	if got := x.Lookup("indented", 0)[0].Comment; got != "comment" {
		t.Errorf("comment %q", got)
	}
}

func TestLineNumbers(t *testing.T) {
	text := "\n# c\na " + sshtest.KeyText(1) + "\nbroken\n\nb " + sshtest.KeyText(2)
	x := Open(sshtest.KnownHostsFile(t, text))
	if a, b := x.Lookup("a", 0), x.Lookup("b", 0); a[0].Line != 3 || b[0].Line != 6 {
		t.Errorf("lines %d and %d, want 3 and 6", a[0].Line, b[0].Line)
	}
	if bad := x.Unreadable(); len(bad) != 1 || bad[0].Line != 4 {
		t.Errorf("unreadable: %v, want line 4", bad)
	}
}
