package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// ./try builds in the repository and runs where it was called.
func TestTryRunsInTheCallersFolder(t *testing.T) {
	try, err := filepath.Abs("try")
	if err != nil {
		t.Fatal(err)
	}
	log, err := filepath.Abs("internal/record/legacylog/testdata/five-machines.txt")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(log, filepath.Join(dir, "mine.txt")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(try, "import", "mine.txt", "--out", "mine.jsonl")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if made, _ := filepath.Glob(filepath.Join(dir, "mine*.jsonl")); err != nil || len(made) == 0 {
		t.Errorf("%v, made %v\n%s", err, made, out)
	}
}
