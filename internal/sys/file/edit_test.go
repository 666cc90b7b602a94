package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
	"sshpace/internal/sys/safedir"
)

func fine(string) error { return nil }
func good() error       { return nil }

var when = time.Date(2026, 11, 21, 1, 2, 3, 0, time.UTC)

// directory is one that nobody else may write.
func directory(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func open(t *testing.T, path, text string) *Change {
	t.Helper()
	c, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	c.New = []byte(text)
	return c
}

// change makes one change of a file.
func change(t *testing.T, path, text string, now time.Time, before func(string) error, after func() error) (backup string, err error) {
	t.Helper()
	c := open(t, path, text)
	defer c.Close()
	return c.Apply(now, before, after)
}

func TestApplyKeepsModeLinkAndAttributes(t *testing.T) {
	dir := directory(t)
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "config")
	write(t, real, "old\n", 0o640)
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	attributes := unix.Setxattr(real, "user.sshpace", []byte("kept"), 0) == nil
	if os.Getuid() == 0 {
		if err := os.Chown(real, 12345, 54321); err != nil {
			t.Fatal(err)
		}
	}
	backup, err := change(t, link, "new\n", when, fine, good)
	if err != nil {
		t.Fatal(err)
	}
	info, _ := os.Lstat(link)
	if info.Mode()&os.ModeSymlink == 0 || read(t, real) != "new\n" || read(t, backup) != "old\n" {
		t.Errorf("link %v, file %q, backup %q", info.Mode(), read(t, real), read(t, backup))
	}
	for _, path := range []string{real, backup} {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil {
			t.Fatal(err)
		}
		if stat.Mode&0o7777 != 0o640 || os.Getuid() == 0 && (stat.Uid != 12345 || stat.Gid != 54321) {
			t.Errorf("%s: mode %o, owner %d:%d", path, stat.Mode, stat.Uid, stat.Gid)
		}
		value := make([]byte, 16)
		if n, err := unix.Getxattr(path, "user.sshpace", value); attributes && (err != nil || string(value[:n]) != "kept") {
			t.Errorf("%s: attribute %q, %v", path, value, err)
		}
	}
	if err := os.Rename(backup, real); err != nil || read(t, link) != "old\n" {
		t.Errorf("the backup: %v, %q", err, read(t, link))
	}
}

func TestFailedChecksChangeNothing(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "config")
	write(t, path, "old\n", 0o600)
	bad := errors.New("bad line")
	var candidate string
	c := open(t, path, "new\n")
	_, err := c.Apply(when, func(p string) error { candidate = read(t, p); return bad }, good)
	if !errors.Is(err, bad) || candidate != "new\n" || read(t, path) != "old\n" {
		t.Errorf("before: %v, candidate %q, file %q", err, candidate, read(t, path))
	}
	_, err = c.Apply(when, fine, func() error {
		if read(t, path) != "new\n" {
			t.Error("after is called before the change is in place")
		}
		return bad
	})
	if !errors.Is(err, bad) || read(t, path) != "old\n" {
		t.Errorf("after: %v, file %q", err, read(t, path))
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := change(t, filepath.Join(dir, "fresh"), "new\n", when, fine, func() error { return bad }); !errors.Is(err, bad) {
		t.Errorf("fresh: %v", err)
	}
	names, _ := filepath.Glob(filepath.Join(dir, "*"))
	if diff := cmp.Diff([]string{path}, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

// Changes that are taken back and made again leave one copy of each state.
func TestOneCopyOfEachState(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "config")
	write(t, path, "old\n", 0o600)
	var first string
	for i, text := range []string{"new\n", "old\n", "new\n", "old\n"} {
		backup, err := change(t, path, text, when.Add(time.Duration(i)*time.Second), fine, good)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = backup
		}
		if i == 2 && backup != first {
			t.Errorf("another copy of the same file: %s, %s", first, backup)
		}
	}
	if names, _ := filepath.Glob(path + copyMark + "*"); len(names) != 2 || read(t, first) != "old\n" {
		t.Errorf("copies: %v", names)
	}
	if err := os.Chmod(first, 0o644); err != nil {
		t.Fatal(err)
	}
	if backup, err := change(t, path, "new\n", when.Add(time.Minute), fine, good); err != nil || backup == first {
		t.Errorf("a copy with another mode is taken: %s, %v", backup, err)
	}
}

// A file that cannot be replaced stays, and no copy of it is left beside it.
func TestProtectedFileLeavesNoBackup(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	dir := directory(t)
	path := filepath.Join(dir, "config")
	write(t, path, "old\n", 0o600)
	c := open(t, path, "new\n")
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil { // no other file is renamed over it
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
	if _, err := c.Apply(when, fine, good); !errors.Is(err, unix.EBUSY) {
		t.Errorf("error %v, want EBUSY", err)
	}
	alone(t, dir)
}

// The same where there is no room for the new file, or for the copy of the old.
func TestFullDiskLeavesNoBackup(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	for _, blocks := range []int{3, 4} { // of 4 KiB: the old file and one or two more
		dir := directory(t)
		if err := unix.Mount("none", dir, "tmpfs", 0, fmt.Sprintf("mode=700,size=%dk", 4*blocks)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
		path := filepath.Join(dir, "config")
		write(t, path, strings.Repeat("o", 2*4096), 0o600)
		c := open(t, path, strings.Repeat("n", 2*4096))
		if _, err := c.Apply(when, fine, good); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v, want ENOSPC", err)
		}
		alone(t, dir)
	}
}

// alone makes sure that the directory holds the file of the test and no other.
func alone(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "config" {
		t.Errorf("the directory holds %v, %v", entries, err)
	}
}

// What an editor writes before the new file takes its place stays.
func TestChangedInBetween(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "config")
	for _, early := range []bool{true, false} {
		write(t, path, "old\n", 0o600)
		c := open(t, path, "new\n")
		theirs := func(string) error { write(t, path, "someone else's\n", 0o600); return nil }
		before := theirs
		if early {
			_, before = theirs(""), fine
		}
		if _, err := c.Apply(when, before, good); !errors.Is(err, ErrChanged) || read(t, path) != "someone else's\n" {
			t.Errorf("%v, %q", err, read(t, path))
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		alone(t, dir)
	}
}

// Of many that change one file at once each finds what the others have written, and one that is
// interrupted waits no more.
func TestManyAtOnce(t *testing.T) {
	path := filepath.Join(directory(t), "config")
	write(t, path, "first\n", 0o600)
	var all sync.WaitGroup
	const many = 20
	for i := range many {
		all.Go(func() {
			c, err := Open(t.Context(), path)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			c.New = fmt.Appendf(c.Old, "line %d\n", i)
			if _, err := c.Apply(when.Add(time.Duration(i)*time.Second), fine, good); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if text := read(t, path); strings.Count(text, "\n") != 1+many {
		t.Errorf("%q", text)
	}
	defer open(t, path, "").Close()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	if _, err := Open(interrupted, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a file that another one changes: %v", err)
	}
}

// A change removes the temporary files of those that were killed, and no other.
func TestLeftovers(t *testing.T) {
	dir := directory(t)
	path := filepath.Join(dir, "config")
	write(t, path, "old\n", 0o600)
	backup := copyMark + Stamp(when)
	for _, end := range []string{newMark + "1", newMark + "18446744073709551615", backup + "-77", copyMark + "20260101T000000.000Z-77"} {
		write(t, path+end, "", 0o600)
	}
	others := []string{"-1", newMark + "x", newMark, "2" + newMark + "1", copyMark + "old-1", ".bak"}
	for _, end := range others {
		write(t, path+end, "", 0o600)
	}
	if _, err := change(t, path, "new\n", when, fine, good); err != nil {
		t.Fatal(err)
	}
	for _, end := range append(others, "", backup) {
		read(t, path+end)
	}
	if names, _ := filepath.Glob(path + "*"); len(names) != len(others)+2 {
		t.Errorf("left: %q", names)
	}
}

func TestUnsafePlacesAreRefused(t *testing.T) {
	for name, prepare := range map[string]func(dir string) string{
		"directory of all": func(dir string) string {
			write(t, filepath.Join(dir, "c"), "", 0o600)
			_ = os.Chmod(dir, 0o777)
			return filepath.Join(dir, "c")
		},
		"file of a group": func(dir string) string { write(t, filepath.Join(dir, "c"), "", 0o660); return filepath.Join(dir, "c") },
		"parent of all": func(dir string) string {
			_ = os.Mkdir(filepath.Join(dir, "sub"), 0o700)
			_ = os.Chmod(dir, 0o777)
			return filepath.Join(dir, "sub", "c")
		},
		"link to nothing": func(dir string) string {
			_ = os.Symlink("nowhere", filepath.Join(dir, "c"))
			return filepath.Join(dir, "c")
		},
		"link into an open directory": func(dir string) string {
			_ = os.Mkdir(filepath.Join(dir, "open"), 0o700)
			_ = os.Chmod(filepath.Join(dir, "open"), 0o777)
			write(t, filepath.Join(dir, "open", "c"), "", 0o600)
			_ = os.Symlink("open/c", filepath.Join(dir, "c"))
			return filepath.Join(dir, "c")
		},
		"pipe": func(dir string) string {
			_ = unix.Mkfifo(filepath.Join(dir, "c"), 0o600)
			return filepath.Join(dir, "c")
		},
	} {
		var unsafe *safedir.UntrustedError
		if _, err := Open(t.Context(), prepare(directory(t))); !errors.As(err, &unsafe) {
			t.Errorf("%s: error %v, want an UntrustedError", name, err)
		}
	}
}

func TestBlock(t *testing.T) {
	b := Block{Name: "advise nas", Text: "Host nas\n    Ciphers a\n", After: "Host *"}
	first, err := b.Into([]byte("User x\n"))
	if err != nil {
		t.Fatal(err)
	}
	sum := checksum("Host nas\n    Ciphers a\nHost *\n")
	want := "# BEGIN sshpace advise nas\nHost nas\n    Ciphers a\nHost *\n# END sshpace advise nas " + sum + "\n\nUser x\n"
	if diff := cmp.Diff(want, string(first)); diff != "" {
		t.Errorf("inserted (-want +got):\n%s", diff)
	}
	b.Text = "Host nas\n    Ciphers b\n"
	second, err := b.Into(append([]byte("# mine\n"), first...))
	if err != nil {
		t.Fatal(err)
	}
	want = strings.NewReplacer("Ciphers a", "Ciphers b", sum, checksum("Host nas\n    Ciphers b\nHost *\n")).Replace(want)
	if diff := cmp.Diff("# mine\n"+want, string(second)); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	other := Block{Name: "advise db", Text: "x"}
	if both, err := other.Into(second); err != nil || strings.Count(string(both), "BEGIN") != 2 {
		t.Errorf("a second block: %q, %v", both, err)
	}
	last := Block{Name: "n", Text: "x", Last: true}
	if got, err := last.Into([]byte("a")); err != nil || string(got) != "a\n\n# BEGIN sshpace n\nx\n# END sshpace n "+checksum("x\n")+"\n" {
		t.Errorf("at the end: %q, %v", got, err)
	}
	for _, damaged := range []string{"# BEGIN sshpace advise nas\n", "# END sshpace advise nas\n", "# BEGIN sshpace advise nas\n" + want} {
		if _, err := b.Into([]byte(damaged)); err == nil {
			t.Errorf("damaged marks were taken: %q", damaged)
		}
	}
}

func TestDiff(t *testing.T) {
	c := &Change{Path: "f", Existed: true, Old: []byte("1\n2\n3\n4\n5\n6\n7\n"), New: []byte("1\n2\n3\nx\ny\n5\n6\n7\n")}
	want := "--- f\n+++ f\n@@ -1,7 +1,8 @@\n 1\n 2\n 3\n-4\n+x\n+y\n 5\n 6\n 7\n"
	if diff := cmp.Diff(want, c.Diff()); diff != "" {
		t.Errorf("diff (-want +got):\n%s", diff)
	}
	c = &Change{Path: "f", New: []byte("a\n")}
	if diff := cmp.Diff("--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n", c.Diff()); diff != "" {
		t.Errorf("new file (-want +got):\n%s", diff)
	}
	c.Old, c.Existed = c.New, true
	if c.Diff() != "" {
		t.Error("no change, and a diff")
	}
}

func FuzzBlock(f *testing.F) {
	f.Add("", "Host a")
	f.Add("# BEGIN sshpace n\nx\n# END sshpace n "+checksum("x\n")+"\ny", "z")
	f.Add("# BEGIN sshpace n\n", "z")
	f.Fuzz(func(t *testing.T, old, text string) {
		if strings.Contains(text, "sshpace n") {
			return
		}
		b := Block{Name: "n", Text: text}
		once, err := b.Into([]byte(old))
		if err != nil {
			return
		}
		twice, err := b.Into(once)
		if err != nil || string(twice) != string(once) {
			t.Errorf("once %q, twice %q, %v", once, twice, err)
		}
	})
}
