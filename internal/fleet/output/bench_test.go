package output

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"

	"sshpace/internal/fleet"
)

// BenchmarkBulk is one host that sends much; the rate is what a sink takes away.
func BenchmarkBulk(b *testing.B) {
	data := bytes.Repeat([]byte("Nov 21 20:13:19 web1 sshd[123]: Accepted publickey for root from 192.0.2.1\n"), 64<<10/76)
	for name, sink := range map[string]fleet.Sink{
		"prefix": newPrefix(prefixOptions{Out: io.Discard, Err: io.Discard}),
		"json":   newJSON(io.Discard),
		"gather": newGather(gatherOptions{Out: io.Discard, Err: io.Discard}),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := sink.Output(fleet.Event{Host: "web1", Data: data}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkHost is what one host with one line of output costs.
func BenchmarkHost(b *testing.B) {
	for name, sink := range map[string]fleet.Sink{
		"prefix":  newPrefix(prefixOptions{Out: io.Discard, Err: io.Discard}),
		"json":    newJSON(io.Discard),
		"gather":  newGather(gatherOptions{Out: io.Discard, Err: io.Discard}),
		"closing": newClosing(io.Discard, 0),
	} {
		b.Run(name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				host := fmt.Sprintf("web%d.example", i%10_000)
				r := exited(i, host, 0)
				r.Elapsed = time.Second
				if err := sink.Output(out(i, host, "6.1.0-18-amd64\n")); err != nil {
					b.Fatal(err)
				}
				if err := sink.Done(r, fleet.Summary{}); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}
