package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A journal that was cut at any byte gives its whole lines and is written on with a whole line.
func TestCutAnywhere(t *testing.T) {
	const whole = "{\"a\":1}\n{\"b\":\"\\n\"}\n{\"c\":[]}\n"
	for cut := range len(whole) + 1 {
		path := filepath.Join(t.TempDir(), "x"+Ending)
		if err := os.WriteFile(path, []byte(whole[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Resume(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		before, cutOff := read(t, f)
		if err := Continue(f, cutOff); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(f, "{}\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		after, again := read(t, f)
		if again || fmt.Sprint(after) != fmt.Sprint(append(before, "{}")) || !strings.HasPrefix(whole, strings.Join(before, "\n")) {
			t.Errorf("cut at %d: %q, then %q, cut %v", cut, before, after, again)
		}
	}
}

func read(t *testing.T, r io.Reader) (lines []string, cut bool) {
	t.Helper()
	for line, err := range Lines(r) {
		if errors.Is(err, ErrTruncated) {
			return lines, true
		}
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	return lines, false
}

// A foreign file without line ends does not fill the memory.
func TestLongLine(t *testing.T) {
	for _, err := range Lines(strings.NewReader("{}\n" + strings.Repeat("x", MaxLine+1))) {
		if err != nil {
			if !strings.Contains(err.Error(), "line 2: longer than") {
				t.Error(err)
			}
			return
		}
	}
	t.Error("no error")
}
