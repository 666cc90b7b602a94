package copy

import (
	"os"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
)

// without returns patterns of names to leave out.
func without(t *testing.T, list ...string) wildcard.Paths {
	t.Helper()
	p, err := wildcard.NewPaths(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// excludable makes a source with files to leave out.
func excludable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir() + "/site"
	for _, name := range []string{"keep", "a.bak", "sub/a.bak/inside", "sub/keep", "cache/x", "sub/cache/y", "tmp/z", "sub/tmp/keep"} {
		write(t, dir+"/"+name, name, 0o644)
	}
	if err := os.Symlink("keep", dir+"/link.bak"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// filesIn lists the files below a directory, without directories.
func filesIn(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	for line := range strings.Lines(contents(t, dir)) {
		name, _, _ := strings.Cut(line, " ")
		list = append(list, name)
	}
	return strings.Join(list, " ")
}

// Names that are left out are neither sent nor fetched, whether a directory or its content is
// copied; only the anchored pattern sees the difference.
func TestExclude(t *testing.T) {
	src := excludable(t)
	for _, tt := range []struct{ slash, below, anchored, want string }{
		{"", "/site", "/site/tmp", "keep sub/keep sub/tmp/keep"},
		{"/", "", "/tmp", "keep sub/keep sub/tmp/keep"},
		{"", "/site", "/tmp", "keep sub/keep sub/tmp/keep tmp/z"},
	} {
		o := Options{Exclude: without(t, "*.bak", "cache/", tt.anchored)}
		dest, back := t.TempDir(), t.TempDir()
		if said, err := upload(t, t.Context(), (&server{}).start(t, ""), o, dest, src+tt.slash); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		if got := filesIn(t, dest+tt.below); got != tt.want {
			t.Errorf("sent of %s: %s, want %s", tt.slash, got, tt.want)
		}
		if err := download(t, (&server{}).start(t, ""), o, 0, back, src+tt.slash); err != nil {
			t.Fatal(err)
		}
		if got := filesIn(t, back+"/h"+tt.below); got != tt.want {
			t.Errorf("fetched of %s: %s, want %s", tt.slash, got, tt.want)
		}
	}
}

// A file that is named can be left out, too; if nothing is left, that is an error.
func TestExcludeNamed(t *testing.T) {
	src := excludable(t)
	sources := NewSources([]string{src + "/a.bak", src + "/keep"})
	sources.Exclude = without(t, "*.bak")
	if list, err := sources.Of(host.Host{}); err != nil || len(list) != 1 || list[0].base != "keep" {
		t.Errorf("%v, %v", list, err)
	}
	sources = NewSources([]string{src})
	sources.Exclude = without(t, "site/")
	if _, err := sources.Check(); err == nil || !strings.Contains(err.Error(), "leaves nothing") {
		t.Error(err)
	}
}
