package compare

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// What SSH exceeds limits nothing; the next that is near does.
func TestExceededIsNoLimit(t *testing.T) {
	r := &rank.Ranking{Bulk: []rank.Cell{{Suite: alg.Suite{Cipher: "aes128-ctr"}, Basis: rank.Measured, Throughput: figureAt(1e9), Sides: rank.Sides{Client: figureAt(1.1), Server: figureAt(0.8)}}}}
	for pipe, want := range map[float64]string{0.9e9: ServerCPU, 1.05e9: record.PipeFlow} {
		machine := &record.File{Measurements: []record.Measurement{{Name: record.PipeFlow, Unit: record.BytesPerSecond, Value: pipe}}}
		if c := ceilingsOf(r, machine); c.Limiting != want {
			t.Errorf("a pipe of %g: limiting is %q, want %q: %+v", pipe, c.Limiting, want, c.Rows)
		}
	}
}

func figureAt(v float64) rank.Figure {
	return rank.Figure{Estimate: stats.Estimate{Log: math.Log(v), N: 9}, Shown: stats.Exactly(v)}
}

func TestCeilings(t *testing.T) {
	r := &rank.Ranking{Bulk: []rank.Cell{
		{Suite: alg.Suite{Cipher: "aes128-gcm@openssh.com"}, Basis: rank.Measured, Throughput: figureAt(800e6), Sides: rank.Sides{Client: figureAt(1), Server: figureAt(0.5)}},
		{Suite: alg.Suite{Cipher: "aes256-gcm@openssh.com"}, Basis: rank.Predicted, Throughput: figureAt(900e6)},
	}}
	machine := &record.File{Measurements: []record.Measurement{
		{Name: "AES-128-GCM 32768", Unit: record.KBPerSecond, Value: 5e6}, {Name: "AES-256-GCM 32768", Unit: record.KBPerSecond, Value: 4e6},
		{Name: "pipe, blocks of 32K", Unit: record.BytesPerSecond, Value: 2e9}, {Name: "loopback TCP, blocks of 32K", Unit: record.BytesPerSecond, Value: 4e9},
		{Name: "disk read, blocks of 512", Unit: record.BytesPerSecond, Value: 2e8}, {Name: "disk read, blocks of 8M", Unit: record.BytesPerSecond, Value: 3.2e9},
		{Name: "ecdh X25519", Unit: record.PerSecond, Value: 1},
	}}
	c := ceilingsOf(r, machine)
	got := map[string]float64{}
	for _, row := range c.Rows {
		got[row.Name] = row.Share
		if row.Control != (row.Name == "disk read, blocks of 512") {
			t.Errorf("control: %+v", row)
		}
	}
	want := map[string]float64{
		ClientCPU: 80, ServerCPU: 40, "AES-128-GCM 32768": 16, "pipe, blocks of 32K": 40, "loopback TCP, blocks of 32K": 20, "disk read, blocks of 512": 0,
		"disk read, blocks of 8M": 25,
	}
	if diff := cmp.Diff(want, got); diff != "" || c.Limiting != ClientCPU || c.Disk != "" {
		t.Errorf("limiting %q, disk %q, shares (-want +got):\n%s", c.Limiting, c.Disk, diff)
	}
	slow := &record.File{Measurements: []record.Measurement{{Name: "disk read, blocks of 8M", Unit: record.BytesPerSecond, Value: 2e8}}}
	if c := ceilingsOf(r, slow); c.Disk != "disk read, blocks of 8M" {
		t.Errorf("a slow disk: %q is said to limit copies", c.Disk)
	}
	r.Campaign.Server, r.Bulk[0].Throughput = "remote", figureAt(1e8)
	if c := ceilingsOf(r, machine); c.Limiting != "" {
		t.Errorf("a slow link: %q is said to limit", c.Limiting)
	}
	if ceilingsOf(&rank.Ranking{}, machine) != nil {
		t.Error("no throughput, but ceilings")
	}
}
