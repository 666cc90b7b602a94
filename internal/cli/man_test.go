package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A link in the place of a page is replaced, not written through.
func TestManDoesNotFollowLinks(t *testing.T) {
	dir := t.TempDir()
	target, pages := filepath.Join(dir, "target"), filepath.Join(dir, "man1")
	if err := os.WriteFile(target, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(pages, "sshpace.1")); err != nil {
		t.Fatal(err)
	}
	if text, err := sshpace(t, []string{"HOME=" + dir}, "man", "--dir", pages); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if text, err := os.ReadFile(target); err != nil || string(text) != "mine\n" {
		t.Errorf("the target of a link was written: %q, %v", text, err)
	}
	page, err := os.ReadFile(filepath.Join(pages, "sshpace.1"))
	if err != nil || !strings.Contains(string(page), ".TH") {
		t.Errorf("no page: %q, %v", page, err)
	}
	if left, _ := filepath.Glob(filepath.Join(pages, ".sshpace-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
