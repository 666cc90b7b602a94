package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsSkippedUnseen: only tests that ./test runs by themselves are skipped where they
// cannot be run, for it shows their reasons, which begin alike; and inputs of a fuzzer that are
// none.
func TestNothingIsSkippedUnseen(t *testing.T) {
	shown := []string{"internal/bench/transfer/disk_test.go", "internal/ssh/knownhosts/index/differential_test.go"}
	skips := regexp.MustCompile(`\.(Skip|Skipf|SkipNow)\((\)|["` + "`" + `][^"` + "`" + `]*)`)
	err := filepath.WalkDir("internal", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		for _, skip := range skips.FindAllStringSubmatch(string(source), -1) {
			if !slices.Contains(shown, path) || path == shown[0] && !strings.HasPrefix(skip[2], `"not run: `) {
				t.Errorf("%s: %s: nobody sees that it is skipped", path, skip[0])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
