package terminal

import (
	"strings"
	"testing"
	"time"
)

func TestProgressWaitsASecond(t *testing.T) {
	var out strings.Builder
	p := NewProgress(&out, "files")
	p.Report(1, 10)
	p.next = time.Now().Add(-time.Millisecond)
	p.Report(2, 10)
	p.Report(3, 10)
	if out.String() != "sshpace: 2 of 10 files\n" {
		t.Errorf("printed %q", out.String())
	}
}
