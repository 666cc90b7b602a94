package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/near"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
)

// Load reads a result. Its hints are commands that show one.
func Load(path string) (*record.File, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	records, err := record.Load(file)
	if err != nil {
		return nil, fault.WithHint(fmt.Errorf("%s: %w", path, err), "report reads the .jsonl files that sshpace bench writes")
	}
	return records, nil
}

func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fault.Usage(resultIn(path), "%s is a folder", path)
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.WithHint(err, nearResult(path))
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.WithHint(err, "its owner may read it, and root: sudo sshpace report "+shell.Word(path))
	}
	return file, fault.WithHint(err, "name a result of sshpace bench")
}

// resultIn is the hint for a folder: its last result, or the last one of all.
func resultIn(folder string) string {
	paths, _ := filepath.Glob(filepath.Join(globEscape(folder), "*"+Ending))
	if len(paths) > 0 {
		return "name a result in it: sshpace report " + shell.Word(paths[len(paths)-1])
	}
	return "there is no result in it; to measure: sshpace bench"
}

// nearResult is the hint for a file that is not there.
func nearResult(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path))
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if found := near.Names(filepath.Base(path), names); len(found) > 0 {
		return "did you mean " + shell.Word(filepath.Join(filepath.Dir(path), found[0]))
	}
	return "to measure and write it: sshpace bench --out " + shell.Word(path)
}

// CheckHost is the error of a bench that was given a result as its host.
func CheckHost(name string) error {
	if !strings.HasSuffix(name, Ending) || !isRegular(name) {
		return nil
	}
	path := shell.Word(name)
	return fault.Usage(fmt.Sprintf("to go on with it: sshpace bench --resume %s; to look at it: sshpace report %s", path, path), "%s is a result, not a host", name)
}

// globEscape makes a pattern of a path that matches that path only.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
