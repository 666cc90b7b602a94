package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The recipes of doc/record.md work on a recorded result.
func TestRecipes(t *testing.T) {
	text, err := os.ReadFile("../../doc/record.md")
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile("testdata/recorded/before.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "run.jsonl"), run, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(sshpaceProgram(t), filepath.Join(dir, "sshpace")); err != nil {
		t.Fatal(err)
	}
	wants := []string{"aes128-gcm@openssh.com\n1.7", " ok\n", "aes128-gcm@openssh.com\t"}
	_, recipes, _ := strings.Cut(string(text), "## Three recipes")
	n := 0
	for line := range strings.Lines(recipes) {
		if !strings.Contains(line, "jq -r") {
			continue
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "XDG_STATE_HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil || n < len(wants) && !strings.Contains(string(out), wants[n]) {
			t.Errorf("%s%v\n%s", line, err, out)
		}
		n++
	}
	if n != len(wants) {
		t.Errorf("%d recipes, want %d", n, len(wants))
	}
}
