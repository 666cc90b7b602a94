package live

import (
	"bytes"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/plan"
	"sshpace/internal/record"
	"sshpace/internal/sys/terminal"
)

func TestStatusFits(t *testing.T) {
	p := plan.Progress{Done: 12, Total: 127, Block: 3, Failed: 1, Remaining: 59 * time.Second}
	for width, want := range map[int][]string{
		79: {"[##......................]  12 of 127 cells  block 3  59s left  1 failed"},
		55: {"[.......]  12 of 127 cells  block 3  59s left  1 failed"},
		39: {"12 of 127 cells  block 3  59s left", "1 failed"},
		15: {"12 of 127 cells", "block 3", "59s left", "1 failed"},
	} {
		if got := status(p, width); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("%d columns: %q, want %q", width, got, want)
		}
	}
}

func TestLeaderFits(t *testing.T) {
	l := plan.Leader{Cell: alg.NewSuite("aes128-ctr", "umac-64-etm@openssh.com", ""), Direction: record.Download, Throughput: 1.2e9, CostNS: 0.45, Predicted: true}
	figure := leaderFigures(l)[0]
	for _, width := range []int{200, 79, 60, 39, 20} {
		for _, both := range []bool{false, true} {
			got := (&View{both: both}).leader(1, l, width)
			if len(got) > width || !strings.Contains(got, figure) {
				t.Errorf("%d columns: %q", width, got)
			}
			if width >= 39 && both != strings.Contains(got, "download") {
				t.Errorf("%d columns, both %v: %q", width, both, got)
			}
		}
	}
}

// Each direction of a cell has its line, with its name where there are two.
func TestLinesOfBothDirections(t *testing.T) {
	var out bytes.Buffer
	v := New(terminal.NewScreen(&out, func(string) string { return "" }), nil, []record.Direction{record.Upload, record.Download})
	for range 2 {
		for _, d := range []record.Direction{record.Upload, record.Download} {
			trial := record.Trial{Want: alg.Suite{Cipher: "aes128-gcm@openssh.com"}, Workload: record.Transfer, Direction: d}
			sample := record.Sample{Outcome: record.OK, Segments: []record.Segment{{WallNS: time.Second, Bytes: 5e6}}}
			for _, r := range []record.Record{{Trial: &trial}, {Sample: &sample}} {
				if err := v.Sink(r); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if want := "upload aes128-gcm@openssh.com: 5.00 MB/s\ndownload aes128-gcm@openssh.com: 5.00 MB/s\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// A view that nobody sees any more ends a run; one that fails otherwise does not.
func TestUnwatched(t *testing.T) {
	sample := record.Record{Sample: &record.Sample{Outcome: record.Broken}}
	for cause, want := range map[error]error{syscall.EPIPE: ErrUnwatched, syscall.EIO: nil} {
		v := New(terminal.NewScreen(brokenWriter{cause}, func(string) string { return "" }), nil, nil)
		if err := v.Sink(sample); err != want {
			t.Errorf("%v: %v, want %v", cause, err, want)
		}
	}
}

// brokenWriter fails with its error.
type brokenWriter struct{ err error }

func (w brokenWriter) Write([]byte) (int, error) { return 0, w.err }
