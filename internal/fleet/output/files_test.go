package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/fleet"
)

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	f, err := OpenFiles(2, dir)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // more hosts than may be open
		for i := range 5 {
			play(t, f, out(i, fmt.Sprintf("web%d", i), fmt.Sprintf("%d\n\x00", round)))
		}
		if len(f.open) > 2 {
			t.Errorf("%d files open", len(f.open))
		}
	}
	play(t, f, stderr(0, "web0", "bad\n"), exited(0, "web0", 1), exited(9, "silent", 0))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "web4.out"))
	if err != nil || string(got) != "0\n\x001\n\x002\n\x00" {
		t.Errorf("web4.out = %q, %v", got, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", info.Mode(), err)
	}
}

// Neither names nor links lead out of the directory.
func TestFilesStayInTheirDirectory(t *testing.T) {
	top := t.TempDir()
	victim := filepath.Join(top, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "web1.out")); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFiles(0, dir)
	if err != nil {
		t.Fatal(err)
	}
	play(t, f, out(0, "web1", "x"), out(1, "../victim", "x"), out(2, "..", "x"), out(3, "a/b", "x"), out(4, "/etc/passwd", "x"))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
		t.Errorf("victim = %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFilesRefuseSharedDirectories(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenFiles(0, dir); err == nil {
		f.End(fleet.Summary{})
		t.Error("a directory in which everybody may write was accepted")
	}
}

// A full disk costs the output that finds no room, nothing else, and is told.
func TestFilesReportAFullDisk(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFiles(0, dir)
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "a.out")
	f.open[name], f.order = full, []string{name}
	for range 2 { // the second finds no open file
		if err := f.Output(out(0, "a", "x")); !isLoss(err) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("error = %v", err)
		}
	}
	play(t, f, out(1, "b", "x"), exited(0, "a", 0), exited(1, "b", 0))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "b.out")); err != nil || string(got) != "x" {
		t.Errorf("b.out = %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.out")); err == nil {
		t.Error("a.out was begun again behind the gap")
	}
}

func TestFileName(t *testing.T) {
	long := strings.Repeat("a", 300)
	tests := []struct{ text, want string }{
		{"root@web1.example-2_x", "root@web1.example-2_x"},
		{"web1:22", "web1%3A22"},
		{"..", "%2E."},
		{".x", "%2Ex"},
		{"../a", "%2E.%2Fa"},
		{"50%", "50%25"},
		{"[::1]:22", "%5B%3A%3A1%5D%3A22"},
		{"k\u00e4", "k%C3%A4"},
	}
	for _, tt := range tests {
		if got := FileName(tt.text); got != tt.want {
			t.Errorf("FileName(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if a, b := FileName(long), FileName(long+"b"); len(a) > maxFileName || a == b {
		t.Errorf("long names: %d bytes, equal: %v", len(a), a == b)
	}
}
