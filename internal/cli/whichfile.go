package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sshpace/internal/base/near"
	"sshpace/internal/base/shell"
)

// recordEnding is that of result files.
const recordEnding = ".jsonl"

// openResult opens a result to read. Its hints are commands that show one.
func openResult(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, usageError(resultIn(path), "%s is a folder", path)
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, withHint(err, nearResult(path))
	case errors.Is(err, fs.ErrPermission):
		return nil, withHint(err, "its owner may read it, and root: sudo sshpace report "+shell.Word(path))
	}
	return file, withHint(err, "name a result of sshpace bench")
}

// resultIn is the hint for a folder: its last result, or the last one of all.
func resultIn(folder string) string {
	paths, _ := filepath.Glob(filepath.Join(globEscape(folder), "*"+recordEnding))
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

// resultForHost is the error of a bench that was given a result as its host.
func resultForHost(name string) error {
	if !strings.HasSuffix(name, recordEnding) || !isRegular(name) {
		return nil
	}
	path := shell.Word(name)
	return usageError(fmt.Sprintf("to go on with it: sshpace bench --resume %s; to look at it: sshpace report %s", path, path), "%s is a result, not a host", name)
}

// globEscape makes a pattern of a path that matches that path only.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}
