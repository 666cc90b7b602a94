package output

import (
	"bytes"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// BenchmarkReader reads the lines of a host: its start, a line of output and its end.
func BenchmarkReader(b *testing.B) {
	hosts := []host.Host{{Name: "web1.example.com"}}
	var text bytes.Buffer
	j := NewRecord(&text, How{})
	j.Begin(fleet.Start{Time: time.Now(), Hosts: hosts})
	text.Reset()
	j.Started(0)
	j.Output(fleet.Event{Data: []byte("15:04 up 3 days, load average 0.01\n"), Time: time.Now()})
	r := fleet.Result{Host: hosts[0], Attempts: 1, Start: time.Now(), Elapsed: time.Second, Phase: fleet.PhaseExit,
		Outcome: fleet.Outcome{Addr: "192.0.2.1:22", Engine: "native", Launcher: "east", Ran: fleet.RanYes}}
	for p := fleet.PhaseDNS; p < fleet.PhaseExit; p++ {
		r.Spent[p] = time.Millisecond
	}
	j.Done(r, fleet.Summary{})
	lines := bytes.Split(bytes.TrimSpace(text.Bytes()), []byte("\n"))
	b.ReportAllocs()
	for b.Loop() {
		in := NewReader(hosts, fleet.Nothing{})
		for _, line := range lines {
			if err := in.Line(line); err != nil {
				b.Fatal(err)
			}
		}
	}
}
