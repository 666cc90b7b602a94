package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The screen of README.md on which a command runs on forty hosts is what sshpace shows, but for the
// time it takes.
func TestScreenOfREADME(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, screen, _ := strings.Cut(string(readme), "\nadmin@gate:~$ ")
	line, rest, _ := strings.Cut(screen, "\n")
	want, _, _ := strings.Cut(rest, "```")
	forty, err := filepath.Abs("testdata/forty.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("unshare", "-n", "-f", "--kill-child", "sh", "-eu", forty, "sh", "-c", strings.Replace(line, "sshpace run", "sshpace run -F cfg", 1))
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "XDG_STATE_HOME="+cmd.Dir)
	got, err := cmd.Output()
	if exit := cmd.ProcessState.ExitCode(); exit != 4 {
		t.Errorf("%v", err)
	}
	times := regexp.MustCompile(` in [0-9.]+m?s; slowest: .*`)
	if diff := cmp.Diff(times.ReplaceAllString(want, ""), times.ReplaceAllString(string(got), "")); diff != "" {
		t.Errorf("%s (-README.md +shown):\n%s", line, diff)
	}
}
