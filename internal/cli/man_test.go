package cli_test

import (
	"os"
	"path/filepath"
	"slices"
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

// Every command has a page, in which every line that begins with a dot is a request that the page
// means.
func TestManPages(t *testing.T) {
	dir := t.TempDir()
	if text, err := sshpace(t, []string{"HOME=" + dir}, "man", "--dir", dir); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("pages %q, %v", pages, err)
	}
	requests := []string{".TH", ".SH", ".SS", ".B", ".BR", ".PP", ".TP", ".nf", ".fi", ".RS", ".RE"}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if request, _, _ := strings.Cut(strings.TrimSpace(line), " "); (line[0] == '.' || line[0] == '\'') && !slices.Contains(requests, request) {
				t.Errorf("%s has the request %q", page, line)
			}
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "sshpace-run.1"))
	for _, want := range []string{
		".SH NAME\nsshpace\\-run \\- Run a command on many hosts at once\n", ".TP\n\\fB\\-F\\fR, \\fB\\-\\-config\\fR\\fI FILE\\fR\n", "\n.BR sshpace (1)\n",
		"sshpace run \\-w \\(aqweb[01\\-40]\\(aq \\-\\- uptime",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in the page of run (%v)\n%s", want, err, text)
		}
	}
}
