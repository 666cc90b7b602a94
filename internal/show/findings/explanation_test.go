package findings

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/base/text"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
)

// A file whose name has no room in the table is called by its last part there, and by its whole
// name once, below; where there is room, or no terminal, it has its name.
func TestLongNamesOfFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 7))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, []byte("Host web1\n  HostName web1.example.org\n  User deploy\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	router, err := route.New(t.Context(), route.Params{Flags: conf.Flags{Config: file}, Getenv: os.Getenv, Stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	config, err := router.Configuration(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e, err := Explain(t.Context(), router, config, host.Host{Name: "web1"})
	if err != nil {
		t.Fatal(err)
	}
	for width, short := range map[int]bool{0: false, 80: true, 400: false} {
		var out strings.Builder
		if err := e.Text(&out, false, width); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), file); short != (n == 1) || short != strings.Contains(out.String(), "\nconfig is "+file+"\n") || short != strings.Contains(out.String(), " config:2\n") {
			t.Errorf("in %d columns:\n%s", width, &out)
		}
		for line := range strings.Lines(out.String()) {
			if short && text.Width(strings.TrimSpace(line)) > width && !strings.HasPrefix(line, "config is ") {
				t.Errorf("%d columns are too many: %s", width, line)
			}
		}
	}
}
