//go:build linux

package hostinfo

import (
	"time"

	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// ForeignLoad adds to slices how long the cores of this machine were busy with other processes,
// where the server runs on it, too. Between two records of which the second is a batch of slices,
// nothing but these slices happens.
type ForeignLoad struct {
	Sink record.Sink
	// Used returns the time of all cores since boot, and the time of this process; ok is false
	// where that cannot be read.
	Used func() (all, own time.Duration, ok bool)
	Now  func() time.Time

	last reading
}

type reading struct {
	at       time.Time
	all, own time.Duration
	ok       bool
}

// Used reads /proc/stat and this process's clock.
func Used() (all, own time.Duration, ok bool) {
	load, ok := proc.ReadLoad()
	return load.Busy, proc.Self(), ok
}

// Record passes a record on, slices with the foreign load.
func (f *ForeignLoad) Record(r record.Record) error {
	now := reading{at: f.Now()}
	now.all, now.own, now.ok = f.Used()
	if s, is := r.(*record.Slices); is && now.ok && f.last.ok {
		s.SpanNS = now.at.Sub(f.last.at)
		if ssh, known := sshCPU(s.Slices); known {
			foreign := max(0, now.all-f.last.all-(now.own-f.last.own)-ssh)
			s.ForeignCPUNS = &foreign
		}
	}
	f.last = now
	return f.Sink(r)
}

// sshCPU returns the CPU time of slices on this machine outside this process; known is false where
// a clock could not be read.
func sshCPU(all []record.Slice) (sum time.Duration, known bool) {
	for _, s := range all {
		if s.ClientCPUNS == nil || s.ServerCPUNS == nil {
			return 0, false
		}
		sum += *s.ClientCPUNS + *s.ServerCPUNS
	}
	return sum, true
}
