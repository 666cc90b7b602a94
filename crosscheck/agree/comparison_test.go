package main

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"
)

// drifting is a run of four rounds on a machine that gets slower all the time, where gcm costs half
// of the reference.
func drifting() *result {
	gcm := cell{Cipher: "aes128-gcm@openssh.com"}
	r := &result{Allowed: []cell{reference, gcm}}
	level := 1.0
	for round := range 4 {
		for place, c := range []cell{reference, gcm, reference, reference, reference} {
			cost := level
			if c == gcm {
				cost /= 2
			}
			r.Transfers = append(r.Transfers, transfer{
				Round: round, Place: place, Reference: place%2 == 0, cell: c, Wall: time.Second,
				ClientCPU: cost, ClientBytes: 1, ServerCPU: cost, ServerBytes: 1, SinkBytes: 1e9 / cost,
			})
			level *= 1.05
		}
	}
	return r
}

func reporting(gcm float64) *report {
	r := &report{Bulk: []row{
		{cell: reference, Client: value{2}, Server: value{2}, Throughput: value{1e9}},
		{cell: cell{Cipher: "aes128-gcm@openssh.com"}, Client: value{gcm}, Server: value{1}, Throughput: value{2e9}},
	}}
	r.Noise.Cost, r.Noise.Throughput = 3, 3
	return r
}

// TestDriftCancels: what slows the machine shows in figures, not in ratios.
func TestDriftCancels(t *testing.T) {
	r := drifting()
	for _, q := range quantities {
		for _, l := range q.lines(r, r.Allowed) {
			want := map[bool]float64{true: 1, false: 0.5}[l.cell == reference]
			if q.name == "throughput, MB/s" {
				want = 1 / want
			}
			if got := l.loopRatio.value(); math.Abs(got-want) > 1e-9 || l.loopRatio.arm > 1e-9 {
				t.Errorf("%s of %s: %s, want %gx exactly", q.name, l.cell, l.loopRatio, want)
			}
			if l.loop.spread < 0.2 {
				t.Errorf("%s of %s spreads by %g only", q.name, l.cell, l.loop.spread)
			}
		}
	}
}

func TestRatiosOutsideTheIntervalAreNamed(t *testing.T) {
	for _, test := range []struct {
		gcm  float64
		want string
	}{
		{1.02, "ratios: median 2.0 %, worst +2.0 % (aes128-gcm); inside 1 of 1"},
		{1.10, "ratios: median 10.0 %, worst +10.0 % (aes128-gcm); inside 0 of 1"},
		{0, "not reported by sshpace"},
	} {
		r := drifting()
		r.Report = reporting(test.gcm)
		if test.gcm == 0 {
			r.Report.Bulk = r.Report.Bulk[:1]
		}
		var out bytes.Buffer
		compare(&out, r)
		if !strings.Contains(out.String(), test.want) {
			t.Errorf("gcm at %g: no %q in\n%s", test.gcm, test.want, &out)
		}
	}
}

// TestInterval has the mean and the standard error of 1, 2, 3, 4: 2.5 and sqrt(5/3)/2, times 3.182.
func TestInterval(t *testing.T) {
	e := estimateOf([]float64{1, 2, 3, 4})
	if math.Abs(e.log-2.5) > 1e-9 || math.Abs(e.arm-3.182*math.Sqrt(5.0/3)/2) > 1e-9 {
		t.Errorf("%g +- %g", e.log, e.arm)
	}
	for degrees, want := range map[int]float64{1: 12.706, 5: 2.571, 7: 2.365, 15: 2.131, 1000: 1.962} { // tables of Student's distribution
		if got := student(degrees); math.Abs(got/want-1) > 0.005 {
			t.Errorf("%d degrees: %g, want %g", degrees, got, want)
		}
	}
}
