package classic

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/document"
)

func render(t *testing.T, r *rank.Ranking, o Options) string {
	t.Helper()
	var out bytes.Buffer
	if err := o.Write(&out, r, document.Answer{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// Fields of a classic line, for awk: 3 cipher, 5 MAC, 7 key exchange, 9 seconds.
func TestClassic(t *testing.T) {
	r := benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(4), time.Minute), rank.Auto)
	text := render(t, r, Options{Size: 1 << 30, Top: 3})
	rows := 0
	last := 0.0
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[1] != "cipher:" {
			continue
		}
		var seconds float64
		if _, err := fmt.Sscan(fields[8], &seconds); err != nil || fields[3] != "mac:" || fields[5] != "kex:" || fields[9] != "seconds" {
			t.Fatalf("fields of %q", line)
		}
		if strings.HasPrefix(line, "1/") {
			last = 0
		}
		if seconds < last {
			t.Errorf("%q is faster than the row before it", line)
		}
		last = seconds
		rows++
	}
	if want := 3 * (1 + 10 + 17 + 14); rows != want { // overall, ciphers, MACs and the implicit one, key exchanges
		t.Errorf("%d rows, want %d", rows, want)
	}
	for _, want := range []string{"### Top-3 overall", "### Average for each cipher", "measured", "stand for 2240 combinations"} {
		if !strings.Contains(text, want) {
			t.Errorf("the lists lack %q", want)
		}
	}
	worst := render(t, r, Options{Worst: true})
	if _, after, _ := strings.Cut(worst, "### Worst-5 overall\n"); !strings.HasPrefix(strings.TrimLeft(after, "1234567890/ "), "cipher: 3des-cbc") {
		t.Errorf("the worst row is %.80q, want 3des-cbc", after)
	}
	if err := (Options{}).Write(io.Discard, &rank.Ranking{}, document.Answer{}); err == nil {
		t.Error("without transfers there is no error")
	}
}

// Names from files and hosts must not steer a terminal.
func TestIsClean(t *testing.T) {
	r := benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(2), time.Minute), rank.Auto)
	r.Bulk[0].Suite.Cipher = "cipher\x1b[31m\r\nforged\u202e"
	text := render(t, r, Options{})
	for _, bad := range []string{"\x1b", "\r", "\u202e", "\nforged"} {
		if strings.Contains(text, bad) {
			t.Errorf("the lists hold %q", bad)
		}
	}
}
