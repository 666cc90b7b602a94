package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logged runs a shell script whose $0 is the log.
func logged(t *testing.T, script string) (text string, flooded bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	l, err := OpenLog(path)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSpawner()
	defer s.Close()
	cmd := exec.Command("/bin/sh", "-c", script, path)
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	l.Follow(func() { KillGroup(cmd) })
	_ = cmd.Wait()
	KillGroup(cmd)
	text, flooded = l.Close()
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", path, err)
	}
	return text, flooded
}

func TestLog(t *testing.T) {
	for name, tt := range map[string]struct {
		script, want string
	}{
		"nothing":           {"exit 1", ""},
		"one writer":        {`echo one >"$0"; echo two >>"$0"`, "one\ntwo\n"},
		"all at once":       {`head -c 1000000 /dev/zero | tr '\0' x >"$0"`, strings.Repeat("x", 1000000)},
		"to the last byte":  {`head -c 1048576 /dev/zero | tr '\0' x >"$0"`, strings.Repeat("x", MaxLog)},
		"a writer too many": {`echo one >"$0"; exec 3>>"$0"; (sleep 60)& exit 0`, "one\n"},
	} {
		if got, flooded := logged(t, tt.script); got != tt.want || flooded {
			t.Errorf("%s: %d bytes, want %d; flooded %v", name, len(got), len(tt.want), flooded)
		}
	}
}

// A program that never stops is ended, and its log is cut off.
func TestLogFlooded(t *testing.T) {
	start := time.Now()
	text, flooded := logged(t, `yes >"$0"; sleep 60`)
	if !flooded || len(text) != MaxLog || time.Since(start) > 30*time.Second {
		t.Errorf("%d bytes after %v, flooded %v", len(text), time.Since(start), flooded)
	}
}

func TestLogNotMade(t *testing.T) {
	if _, err := OpenLog(filepath.Join(t.TempDir(), "no", "log")); err == nil {
		t.Error("a pipe in a directory that is not there")
	}
}
