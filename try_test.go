package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ./try builds in the repository, runs where it was called, and says how sshpace gets into PATH.
func TestTryRunsInTheCallersDirectory(t *testing.T) {
	try, err := filepath.Abs("try")
	if err != nil {
		t.Fatal(err)
	}
	log, err := filepath.Abs("internal/legacy/testdata/five-machines.txt")
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
	// Its last line makes the commands work that were printed.
	_, export, ok := strings.Cut(string(out), "\ntry: sshpace is not in PATH; for the commands above: ")
	if !ok {
		t.Fatalf("no word about PATH:\n%s", out)
	}
	if out, err := exec.Command("sh", "-c", export+"sshpace --version").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
