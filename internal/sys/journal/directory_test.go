package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var begin = time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC)

// Journals of one moment differ, and the last one made is the newest, among names of all versions.
func TestNames(t *testing.T) {
	d := Directory(filepath.Join(t.TempDir(), "state", "x"))
	if names, err := d.Names(); len(names) > 0 || err != nil {
		t.Errorf("no directory: %q, %v", names, err)
	}
	var want []string
	for range 3 {
		f, err := d.Create(begin, "-nas")
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, filepath.Base(f.Name()))
		if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		f.Close()
	}
	for _, older := range []string{"20261121T195959.123Z-loopback.jsonl", "20261121T195958.123Z-abcdef.jsonl", "20261121T195957.123456789Z-abcdef.jsonl"} {
		want = slices.Insert(want, 0, older)
		if err := os.WriteFile(filepath.Join(string(d), older), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	slices.Reverse(want)
	if names, err := d.Names(); err != nil || !slices.Equal(names, want) {
		t.Errorf("%q, want %q, %v", names, want, err)
	}
}

// No directory is an error of whoever needs one, and of nobody else.
func TestNoDirectory(t *testing.T) {
	if names, err := Directory("").Names(); len(names) > 0 || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if err := Directory("").Prune(1, 0); err != nil {
		t.Error(err)
	}
	if _, err := Directory("").Create(begin, ""); err == nil {
		t.Error("a journal without a directory")
	}
	if _, err := Directory(t.TempDir()).Open("x"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// Pruning leaves the newest ones and what is the user's, however many do it at once.
func TestPrune(t *testing.T) {
	d := Directory(t.TempDir())
	keep := []string{"20251231-before-the-move.jsonl", "0.jsonl", "notes.txt"}
	for _, name := range keep {
		if err := os.WriteFile(filepath.Join(string(d), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for day := range 30 {
		f, err := d.Create(begin.AddDate(0, 0, day), "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Close(); day >= 25 {
			keep = append(keep, filepath.Base(f.Name()))
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := d.Prune(5, 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := os.ReadDir(string(d))
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if slices.Sort(keep); !slices.Equal(left, keep) {
		t.Errorf("left %q, want %q", left, keep)
	}
}

// A journal has one writer at a time.
func TestOneWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x"+Ending)
	f, err := New(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if _, err := Resume(path); err == nil || !strings.Contains(err.Error(), "another sshpace") {
		t.Error(err)
	}
	f.Close()
	if f, err = Resume(path); err != nil {
		t.Fatal(err)
	}
	f.Close()
}

// Pruning by size leaves the newest ones that fit, and what is being written.
func TestPruneBytes(t *testing.T) {
	d := Directory(t.TempDir())
	var keep []string
	for day := range 6 {
		f, err := d.Create(begin.AddDate(0, 0, day), "")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		if day == 0 || day >= 4 {
			keep = append([]string{filepath.Base(f.Name())}, keep...)
		}
		if day > 0 {
			f.Close()
		}
	}
	if err := d.Prune(200, 250); err != nil {
		t.Fatal(err)
	}
	if names, err := d.Names(); err != nil || !slices.Equal(names, keep) {
		t.Errorf("%q, want %q, %v", names, keep, err)
	}
}
