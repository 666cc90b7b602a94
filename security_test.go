package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every row of the two tables of doc/security.md has the next number and names tests,
// unless what it is about does not exist, and all of them are in the tree.
func TestSecurityMeasuresHaveTests(t *testing.T) {
	text, err := os.ReadFile("doc/security.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testsOfTheTree(t)
	rows := regexp.MustCompile(`(?m)^\| \d+ \|.*$`).FindAllString(string(text), -1)
	tables, last := 0, 0
	for _, row := range rows {
		number, err := strconv.Atoi(strings.Fields(row)[1])
		if number == 1 {
			tables, last = tables+1, 0
		}
		if last++; err != nil || number != last {
			t.Errorf("want number %d: %s", last, row)
		}
	}
	if tables != 2 {
		t.Errorf("%d tables, want threats and measures", tables)
	}
	name := regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_/]+)`")
	for _, row := range rows {
		if !name.MatchString(row) && !strings.Contains(row, "Not in this version") {
			t.Errorf("no test in: %s", row)
		}
	}
	for _, match := range name.FindAllStringSubmatch(string(text), -1) {
		if !tests[match[1]] {
			t.Errorf("doc/security.md names %s, which does not exist", match[1])
		}
	}
}

// scripts are the directories of the tests that run a script for each file.
var scripts = map[string]string{
	"TestRunScripts/": "internal/cli/testdata/run",
	"TestScripts/":    "internal/cli/testdata/script",
}

// testsOfTheTree are the names of all tests, fuzz targets and scripts.
func testsOfTheTree(t *testing.T) map[string]bool {
	tests := make(map[string]bool)
	for prefix, directory := range scripts {
		files, _ := filepath.Glob(filepath.Join(directory, "*.txtar"))
		for _, file := range files {
			tests[prefix+strings.TrimSuffix(filepath.Base(file), ".txtar")] = true
		}
	}
	declaration := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, match := range declaration.FindAllStringSubmatch(string(source), -1) {
			tests[match[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}
