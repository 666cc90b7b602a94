package wildcard

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestPathsAsRsync: patterns leave out the same files as rsync(1), which is asked.
func TestPathsAsRsync(t *testing.T) {
	if _, err := exec.LookPath("rsync"); err != nil {
		t.Fatalf("%v: install rsync", err)
	}
	dir := t.TempDir()
	for _, name := range []string{
		"site/a", "site/b.txt", "site/.git/a", "site/sub/a", "site/sub/b.txt", "site/sub/site/a", "site/[x]/a*b",
		"site/cache/a/b", "site/sub/cache/b", "site/ab", "site/\\b", "site/sub/a\nb", "site/-", "site/]",
	} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	list := []string{
		"a", "*.txt", "/a", "/site/a", "cache/", "a/", "sub/a", "/sub/a", "**/b", "/**/b", "sub/**", "s*a", "s**a", "?", "??", "[a-b]", "[!a-b]",
		"[^a]", "[x]", "\\[x]", "[[]x]", "a\\*b", "a*b", "\\b", "\\\\b*", "site", "/site/", "site/*", "*", "**", "sub/site/a", "cache/*/b", ".*", "[]]", "[!]]", "[-]", "[!-a]", "[[:alpha:]]",
		"site/sub", "/site/sub/", "***", "su[b]/a", "{a,b}", "a?b", "sub[!x]a",
	}
	r := rand.New(rand.NewPCG(1, 2026))
	for range 40 {
		var b strings.Builder
		for range 1 + r.IntN(6) {
			b.WriteString([]string{"a", "b", "*", "**", "?", "/a", "sub", "[ab]", "[!a]", "cache", "site", "."}[r.IntN(12)])
		}
		list = append(list, b.String())
	}
	for i, pattern := range list {
		source := []string{"site", "site/"}[i%2]
		got, want := kept(t, dir, source, pattern), listed(t, dir, source, pattern)
		if !slices.Equal(got, want) {
			t.Errorf("%q of %s: left\n%q, rsync has\n%q", pattern, source, got, want)
		}
	}
}

// TestPathsRefused: a pattern that stands for nothing is an error. ? is one character of any
// length.
func TestPathsRefused(t *testing.T) {
	for _, pattern := range []string{"", "/", "a[b", "[", "a[z-a]", "//"} {
		if p, err := NewPaths([]string{pattern}); err == nil {
			t.Errorf("%q: %v", pattern, p)
		}
	}
	if p, err := NewPaths([]string{"?"}); err != nil || !p.Match("sub/ü", false) || p.Match("ab", false) {
		t.Error(err)
	}
}

// kept lists the files of a source that a pattern leaves.
func kept(t *testing.T, dir, source, pattern string) (names []string) {
	p, err := NewPaths([]string{pattern})
	if err != nil {
		t.Fatal(err)
	}
	base := dir
	if strings.HasSuffix(source, "/") {
		base = filepath.Join(dir, source)
	}
	filepath.WalkDir(filepath.Join(dir, source), func(at string, d os.DirEntry, _ error) error {
		name, _ := filepath.Rel(base, at)
		switch {
		case name == ".":
		case p.Match(name, d.IsDir()) && d.IsDir():
			return filepath.SkipDir
		case !p.Match(name, d.IsDir()):
			names = append(names, name)
		}
		return nil
	})
	slices.Sort(names)
	return names
}

// listed lists the files of a source that rsync would copy.
func listed(t *testing.T, dir, source, pattern string) (names []string) {
	t.Helper()
	cmd := exec.Command("rsync", "-an8", "--out-format=%n|", "--exclude", pattern, source, filepath.Join(dir, "to"))
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v", pattern, err)
	}
	for name := range strings.SplitSeq(string(out), "|\n") {
		name = strings.ReplaceAll(strings.TrimSuffix(name, "/"), `\#012`, "\n")
		if name != "." && name != "" && !strings.HasPrefix(name, "created directory") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
