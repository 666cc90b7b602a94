package rank

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

func quantityAt(v float64) *Quantity { return &Quantity{Value: v, Lo: v * 0.98, Hi: v * 1.02, N: 9} }

func TestCeilings(t *testing.T) {
	r := &Ranking{Bulk: []Cell{
		{Suite: alg.Suite{Cipher: "aes128-gcm@openssh.com"}, Basis: Measured, Throughput: quantityAt(800e6), Client: quantityAt(1), Server: quantityAt(0.5)},
		{Suite: alg.Suite{Cipher: "aes256-gcm@openssh.com"}, Basis: Predicted, Throughput: quantityAt(900e6)},
	}}
	machine := &record.File{Measurements: []record.Measurement{
		{Name: "AES-128-GCM 32768", Unit: record.KBPerSecond, Value: 5e6}, {Name: "AES-256-GCM 32768", Unit: record.KBPerSecond, Value: 4e6},
		{Name: "pipe, blocks of 32K", Unit: record.BytesPerSecond, Value: 2e9}, {Name: "loopback TCP, blocks of 32K", Unit: record.BytesPerSecond, Value: 4e9},
		{Name: "disk read, blocks of 512", Unit: record.BytesPerSecond, Value: 2e8}, {Name: "disk read, blocks of 8M", Unit: record.BytesPerSecond, Value: 3.2e9},
		{Name: "ecdh X25519", Unit: record.PerSecond, Value: 1},
	}}
	c := CeilingsOf(r, machine)
	got := map[string]float64{}
	for _, row := range c.Rows {
		got[row.Name] = row.Share
		if row.Control != (row.Name == "disk read, blocks of 512") {
			t.Errorf("control: %+v", row)
		}
	}
	want := map[string]float64{
		ClientCPU: 0.8, ServerCPU: 0.4, "AES-128-GCM 32768": 0.16, "pipe, blocks of 32K": 0.4, "loopback TCP, blocks of 32K": 0.2, "disk read, blocks of 512": 0,
		"disk read, blocks of 8M": 0.25,
	}
	if diff := cmp.Diff(want, got); diff != "" || c.Limiting != ClientCPU || c.Disk != "" {
		t.Errorf("limiting %q, disk %q, shares (-want +got):\n%s", c.Limiting, c.Disk, diff)
	}
	slow := &record.File{Measurements: []record.Measurement{{Name: "disk read, blocks of 8M", Unit: record.BytesPerSecond, Value: 2e8}}}
	if c := CeilingsOf(r, slow); c.Disk != "disk read, blocks of 8M" {
		t.Errorf("a slow disk: %q is said to limit copies", c.Disk)
	}
	r.Campaign.Server, r.Bulk[0].Throughput = "remote", quantityAt(1e8)
	if c := CeilingsOf(r, machine); c.Limiting != "" {
		t.Errorf("a slow link: %q is said to limit", c.Limiting)
	}
	if CeilingsOf(&Ranking{}, machine) != nil {
		t.Error("no throughput, but ceilings")
	}
}

// The cost of the servers is unknown for one cell: the clients are compared.
func TestGain(t *testing.T) {
	within := func(throughput, client, total float64) Figures {
		e := func(v float64) stats.Estimate { return stats.Estimate{Log: math.Log(v), Err: 0.01, N: 9} }
		return Figures{Throughput: e(throughput), Client: e(client), Total: e(total)}
	}
	r := &Ranking{By: Throughput, Bulk: []Cell{
		{Suite: alg.Suite{Cipher: "a", MAC: "m"}, Direction: record.Upload, Group: "A", Throughput: quantityAt(300), Client: quantityAt(1), Server: quantityAt(1), Within: within(300, 1, 2)},
		{Suite: alg.Suite{Cipher: "b", MAC: "m"}, Direction: record.Upload, Group: "B", Throughput: quantityAt(100), Client: quantityAt(2), Within: within(100, 2, 2)},
	}}
	from, ok := r.Find(alg.Suite{Cipher: "b", MAC: "m", Kex: "ignored"}, record.Upload)
	to, ok2 := r.Find(alg.Suite{Cipher: "a", MAC: "m"}, record.Upload)
	if _, wrong := r.Find(alg.Suite{Cipher: "a", MAC: "m"}, record.Download); !ok || !ok2 || wrong {
		t.Fatal("cells are not found by name and direction")
	}
	g := r.Gain(from, to)
	if g.Verdict != stats.Better || g.Chance < 0.99 || g.Throughput.Value < 2.99 || g.Throughput.Value > 3.01 || g.Throughput.Lo > 2.95 || g.Throughput.Hi < 3.05 || math.Abs(g.Cost.Value-2) > 0.01 {
		t.Errorf("gain: %+v %+v", g.Throughput, g.Cost)
	}
}

// Clocks of whole seconds widen the interval of a copy.
func TestCoarseClock(t *testing.T) {
	var c coarseness
	for range 4 {
		c = c.add(record.Sample{ElapsedNS: 6e9, ElapsedLoNS: 5e9, ElapsedHiNS: 7e9})
	}
	if q := c.widen(Quantity{Value: 6, Lo: 6, Hi: 6}); q.Lo != 5 || q.Hi != 7 {
		t.Errorf("whole seconds: %+v", q)
	}
	if q := (coarseness{}).add(record.Sample{ElapsedNS: 6e9}).widen(Quantity{Value: 6, Lo: 5.9, Hi: 6.1}); q.Lo != 5.9 || q.Hi != 6.1 {
		t.Errorf("an exact clock: %+v", q)
	}
}
