package limits_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"sshpace/internal/bench/limits"
	"sshpace/internal/record"
)

func share(s float64) *float64 { return &s }

// What was measured decides, and the sentence has the figures that it rests on.
func TestJudge(t *testing.T) {
	const up, down, ms = record.Upload, record.Download, time.Millisecond
	idle := func(e record.Evidence) record.Evidence {
		e.ClientShare, e.ClientWaits, e.ServerShare, e.ServerWaits = share(0.04), share(0.02), share(0.03), share(0)
		return e
	}
	for name, c := range map[string]struct {
		direction record.Direction
		e         record.Evidence
		want      string
		says      string
	}{
		"link":               {up, idle(record.Evidence{BytesPerSecond: 11.9e6, RTTNS: 20 * ms, RawBytesPerS: 12e6, Cores: 2}), record.LimitLink, "12.0 MB/s"},
		"link of a host":     {up, record.Evidence{BytesPerSecond: 12e6, RTTNS: ms / 2, TwoBytesPerS: 12.2e6, ClientShare: share(0.03)}, record.LimitLink, "two connections at once carry no more"},
		"host is this one":   {up, record.Evidence{BytesPerSecond: 400e6, RTTNS: ms / 5, TwoBytesPerS: 440e6, OwnCores: 2, BusyCores: 1.6, TwoBusyCores: 1.98, ClientShare: share(0.6), ClientWaits: share(0.1)}, record.LimitClientCPU, "2.0 of its 2 cores are busy while two connections"},
		"others are busy":    {up, record.Evidence{BytesPerSecond: 100e6, RTTNS: ms, TwoBytesPerS: 104e6, OwnCores: 2, BusyCores: 2, TwoBusyCores: 2, ClientShare: share(0.4), ClientWaits: share(0.01)}, record.LimitUnknown, "say nothing about the link"},
		"link, busy machine": {up, record.Evidence{BytesPerSecond: 12e6, RTTNS: ms / 2, TwoBytesPerS: 12.2e6, OwnCores: 2, BusyCores: 2, TwoBusyCores: 2, ClientShare: share(0.04), ClientWaits: share(0.05)}, record.LimitLink, "two connections at once carry no more"},
		"window":             {down, idle(record.Evidence{BytesPerSecond: 39e6, RTTNS: 50 * ms, RawBytesPerS: 400e6, Cores: 2}), record.LimitWindow, "41.9 MB/s"},
		"raw TCP too short":  {up, idle(record.Evidence{BytesPerSecond: 17.9e6, RTTNS: 100 * ms, RawBytesPerS: 6.9e6, Cores: 2}), record.LimitWindow, "21.0 MB/s"},
		"window of a host":   {up, record.Evidence{BytesPerSecond: 20e6, RTTNS: 100 * ms, TwoBytesPerS: 40e6, ClientShare: share(0.03)}, record.LimitWindow, "100 ms"},
		"window, no core":    {up, record.Evidence{BytesPerSecond: 23.7e6, RTTNS: 20 * ms, TwoBytesPerS: 46.5e6, OwnCores: 2, BusyCores: 1.99, TwoBusyCores: 1.99, ClientShare: share(0.09), ClientWaits: share(0.6)}, record.LimitBusy, "waiting for CPU 60 % of the time"},
		"trip of a crowd":    {up, record.Evidence{BytesPerSecond: 120e6, RTTNS: 12 * ms, TCPRTTNS: ms / 20, TwoBytesPerS: 240e6, OwnCores: 2, BusyCores: 2, ClientShare: share(0.15), ClientWaits: share(0.45)}, record.LimitBusy, "waiting for CPU 45 % of the time"},
		"far, and a crowd":   {up, record.Evidence{BytesPerSecond: 39e6, RTTNS: 50 * ms, TCPRTTNS: 50 * ms, TwoBytesPerS: 70e6, OwnCores: 2, BusyCores: 2, ClientShare: share(0.05), ClientWaits: share(0.3)}, record.LimitWindow, "is 41.9 MB/s, and 39.0 MB/s was measured"},
		"kept waiting":       {up, record.Evidence{BytesPerSecond: 23.7e6, RTTNS: 20 * ms, TwoBytesPerS: 25e6, OwnCores: 2, BusyCores: 1.99, TwoBusyCores: 1.99, ClientShare: share(0.09), ClientWaits: share(0.6)}, record.LimitBusy, "waiting for CPU 60 % of the time"},
		"link near window":   {up, record.Evidence{BytesPerSecond: 30e6, RTTNS: 50 * ms, TwoBytesPerS: 30.5e6, ClientShare: share(0.05)}, record.LimitLink, "two connections at once carry no more"},
		"losses":             {up, record.Evidence{BytesPerSecond: 3e6, RTTNS: 10 * ms, TCPRTTNS: 10 * ms, Retransmitted: 0.01, ClientShare: share(0.03)}, record.LimitLosses, "1.0 %"},
		"losses, no delay":   {up, idle(record.Evidence{BytesPerSecond: 11.2e6, RTTNS: 350 * time.Microsecond, Stalled: share(0.73), RawBytesPerS: 28.8e6, Cores: 2}), record.LimitLosses, "73 %"},
		"a sink that pauses": {up, idle(record.Evidence{BytesPerSecond: 5e6, RTTNS: 350 * time.Microsecond, Stalled: share(0.73), RawBytesPerS: 1.9e9, Cores: 2}), record.LimitSink, "5.00 MB/s"},
		"losses of a relay":  {up, idle(record.Evidence{BytesPerSecond: 16e6, RTTNS: 10 * ms, Stalled: share(0.7), RawBytesPerS: 16e6, Cores: 2}), record.LimitLosses, "70 %"},
		"spurious":           {up, idle(record.Evidence{BytesPerSecond: 12e6, RTTNS: 20 * ms, Retransmitted: 0.01, RawBytesPerS: 12e6, Cores: 2}), record.LimitLink, ""},
		"source":             {up, idle(record.Evidence{BytesPerSecond: 5e6, RTTNS: ms / 5, SourceEmpty: share(0.95), RawBytesPerS: 900e6, Cores: 2}), record.LimitSource, "95 %"},
		"source far away":    {down, idle(record.Evidence{BytesPerSecond: 5e6, RTTNS: ms / 5, SinkFull: share(0), RawBytesPerS: 900e6, Cores: 2}), record.LimitSource, "900 MB/s"},
		"sink":               {down, idle(record.Evidence{BytesPerSecond: 5e6, RTTNS: ms / 5, SinkFull: share(0.9), RawBytesPerS: 900e6, Cores: 2}), record.LimitSink, "90 %"},
		"sink far away":      {up, idle(record.Evidence{BytesPerSecond: 5e6, RTTNS: ms / 5, SourceEmpty: share(0), RawBytesPerS: 900e6, Cores: 2}), record.LimitSink, "900 MB/s"},
		"client":             {up, record.Evidence{BytesPerSecond: 300e6, RTTNS: ms / 5, ClientShare: share(0.97), ClientWaits: share(0.01), ServerShare: share(0.5), Cores: 4}, record.LimitClientCPU, "97 %"},
		"server":             {up, record.Evidence{BytesPerSecond: 300e6, RTTNS: ms / 5, ClientShare: share(0.4), ServerShare: share(0.96), Cores: 4}, record.LimitServerCPU, "96 %"},
		"both":               {up, record.Evidence{BytesPerSecond: 900e6, ClientShare: share(0.95), ServerShare: share(0.96), Cores: 2}, record.LimitBothCPUs, "95 %"},
		"client compresses":  {up, record.Evidence{BytesPerSecond: 24e6, ClientShare: share(1), ServerShare: share(0.3), Compressed: true}, record.LimitClientCPU, "sshd 30 %"},
		"compresses, full":   {up, record.Evidence{BytesPerSecond: 35e6, OwnCores: 2, BusyCores: 2, ClientShare: share(0.6), ClientWaits: share(0.1), Compressed: true}, record.LimitClientCPU, "2.0 of its 2 cores are busy"},
		"client of a host":   {up, record.Evidence{BytesPerSecond: 100e6, ClientShare: share(0.99), TwoBytesPerS: 190e6}, record.LimitClientCPU, "what sshd uses is not known"},
		"busy core":          {up, record.Evidence{BytesPerSecond: 90e6, ClientShare: share(0.25), ClientWaits: share(0.74), ServerShare: share(0.2), Cores: 2}, record.LimitBusy, "waiting for CPU 74 % of the time"},
		"CPU before link":    {up, record.Evidence{BytesPerSecond: 100e6, ClientShare: share(0.98), ServerShare: share(0.5), RawBytesPerS: 110e6, RTTNS: ms, Cores: 4}, record.LimitClientCPU, ""},
		"sshpace itself":     {up, idle(record.Evidence{BytesPerSecond: 2e9, HarnessShare: 0.95, Cores: 4}), record.LimitHarness, "95 %"},
		"nothing to go upon": {up, record.Evidence{BytesPerSecond: 50e6, ClientShare: share(0.3), TwoBytesPerS: 100e6}, record.LimitUnknown, "is unknown"},
	} {
		what, sentence, help := limits.Judge(c.direction, c.e)
		if what != c.want || !strings.Contains(sentence, c.says) {
			t.Errorf("%s: %s: %s", name, what, sentence)
		}
		if strings.Contains(help, "compression: ") != (c.e.Compressed && strings.Contains(what, "CPU")) {
			t.Errorf("%s: help %q", name, help)
		}
		if help == "" && what != record.LimitUnknown {
			t.Errorf("%s: nothing helps", name)
		}
		if strings.Contains(sentence, "cipher") {
			t.Errorf("%s: a cipher is blamed: %s", name, sentence)
		}
	}
}

func TestFileRead(t *testing.T) {
	path := t.TempDir() + "/file"
	write(t, path, 4<<20)
	rates, err := limits.FileRead(t.Context(), path)
	if err != nil || len(rates) == 0 || rates[0].Name != record.FileCached || rates[0].Value <= 0 {
		t.Errorf("%v, %v", rates, err)
	}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
}
