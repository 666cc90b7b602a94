package document_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// overTrips is a result of two methods over several round trips; the second was not measured over
// the last.
func overTrips() *record.File {
	f := &record.File{}
	add := func(mode record.Mode, rtt time.Duration, rate float64) {
		id := len(f.Subjects) + 1
		f.Subjects = append(f.Subjects, record.Subject{ID: id, Method: &record.Method{
			Mode: mode, Direction: record.Upload, Suite: alg.NewSuite("aes128-gcm@openssh.com", "", ""), SizeBytes: 64 << 20,
			Path: record.Path{RTT: rtt, BytesPerS: 50e6},
		}})
		long := time.Second + time.Duration((64<<20)/rate*1e9)
		f.Readings = append(f.Readings, record.Reading{Subject: id, Kind: record.ShortRun, WallNS: time.Second}, record.Reading{Subject: id, Kind: record.LongRun, WallNS: long})
	}
	for _, rtt := range []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond} {
		add(record.ModePipe, rtt, 400e6/(1+rtt.Seconds()*190))
	}
	add(record.ModeSCP, 0, 300e6)
	add(record.ModeSCP, 50*time.Millisecond, 30e6)
	return f
}

// Throughput over the round trip stands beside what the window lets through, in words and as a
// chart; over a single round trip there is neither.
func TestOverTheRoundTrip(t *testing.T) {
	f := overTrips()
	d := document.OfMethods(compare.MethodResults(f), f, false, document.Commands{Resume: "sshpace transfer --resume FILE"})
	if len(d.Charts) != 1 || d.Charts[0].Shape != document.Curve {
		t.Fatalf("charts: %+v", d.Charts)
	}
	c := d.Charts[0]
	if len(c.Items) != 3 || len(c.Items[0].Points) != 3 || len(c.Items[1].Points) != 2 || !c.Items[2].Bound {
		t.Fatalf("curves: %+v", c.Items)
	}
	for i, p := range c.Items[2].Points {
		if want := 2 * 1.048576 / (c.Items[2].X[i] / 1e3); math.Abs(p.Value/want-1) > 1e-9 {
			t.Errorf("over %v ms the window lets %v MB/s through, not %v", c.Items[2].X[i], p.Value, want)
		}
	}
	if first, last := c.Items[2].Points[0].Value, c.Items[2].X[40]; math.Abs(first-400) > 1 || math.Abs(last-100) > 1e-6 {
		t.Errorf("the ceiling goes from %v to %v", first, last)
	}
	text := strings.Join(strings.Fields(brief(d)), " ")
	for _, want := range []string{"a path of 50.0 MB/s", "MB/s over the round trip", "2 MiB / round trip - 41.9 21.0", "pipe upload 400 38.1 20.0", "scp upload 300 30.0 -"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}

	f.Subjects, f.Readings = f.Subjects[:1], f.Readings[:2]
	if d := document.OfMethods(compare.MethodResults(f), f, false, document.Commands{Resume: "sshpace transfer --resume FILE"}); len(d.Charts) != 1 || d.Charts[0].Name != "methods" || len(d.Charts[0].Items) != 1 || math.Round(d.Charts[0].Items[0].Points[0].Value) != 400 || strings.Contains(brief(d), "over the round trip") {
		t.Errorf("one round trip is drawn: %+v", d.Charts)
	}
}

// Several connections at once: up to how many carry more is said.
func TestScaling(t *testing.T) {
	f := &record.File{}
	add := func(mode record.Mode, streams int, rate float64) {
		id := len(f.Subjects) + 1
		f.Subjects = append(f.Subjects, record.Subject{ID: id, Method: &record.Method{Mode: mode, Direction: record.Upload, Streams: streams, Suite: alg.NewSuite("aes128-gcm@openssh.com", "", ""), SizeBytes: 1e9}})
		for _, off := range []float64{0.998, 1, 1.002} {
			f.Readings = append(f.Readings, record.Reading{Subject: id, Kind: record.ShortRun, WallNS: time.Second}, record.Reading{Subject: id, Kind: record.LongRun, WallNS: time.Second + time.Duration(off*1e9/rate*1e9)})
		}
	}
	add(record.ModePipe, 0, 400e6)
	add(record.ModeStreams, 2, 700e6)
	add(record.ModeStreams, 4, 710e6)
	said := func() string {
		return strings.Join(strings.Fields(brief(document.OfMethods(compare.MethodResults(f), f, false, document.Commands{Resume: "sshpace transfer --resume FILE"}))), " ")
	}
	if text := said(); !strings.Contains(text, "Connections at once (upload aes128-gcm): 1: 400, 2: 700, 4: 710 MB/s; more than 2 connections are no faster") {
		t.Error(text)
	}
	add(record.ModeStreams, 8, 1400e6)
	if text := said(); !strings.Contains(text, "faster up to 8 connections, the most that were tried") {
		t.Error(text)
	}
	for _, wall := range []time.Duration{2500, 2600, 4000} {
		f.Readings = append(f.Readings, record.Reading{Subject: 4, Kind: record.LongRun, WallNS: wall * time.Millisecond})
	}
	if text := said(); !strings.Contains(text, "MB/s; not enough data to say whether more than 2 carry more; use more --rounds") {
		t.Error(text)
	}
}
