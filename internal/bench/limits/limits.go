//go:build linux

// Package limits measures what a machine can do at most: the cryptographic
// primitives of its OpenSSL, copying in memory, a pipe, TCP on loopback, and
// reading a file. No SSH connection can be faster than the slowest of these that
// it goes through. It starts `openssl speed`, opens a socket on loopback and
// writes one file, which it removes.
package limits

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

const (
	pipeName     = record.PipeFlow + ", blocks of 32K"
	loopbackName = record.LoopbackFlow + ", blocks of 32K"
	ownProgram   = "sshpace limits"
)

// DefaultRounds take about a minute.
const DefaultRounds = 3

// Options of Measure. Only DiskDir is needed where the disk is measured.
type Options struct {
	OpenSSL   string       // path of the openssl program; "" if there is none
	Only      []string     // names of probes or globs; empty for all
	Rounds    sched.Rounds // how often each is measured; none is 3
	DiskDir   string       // folder for the file that is read
	DiskBytes unit.Bytes   // its size; 0 is 256 MiB
	Progress  func(probe string)
}

// probe is one thing to measure.
type probe struct {
	name string
	run  func(ctx context.Context) ([]record.Measurement, error)
	once bool // too slow, or too steady, to be repeated
}

// absentError says why a probe cannot be measured here. It is data, no failure.
type absentError struct{ why string }

func (e *absentError) Error() string { return e.why }

// Names lists the probes.
func Names() []string {
	var names []string
	for _, p := range probes(Options{}) {
		names = append(names, p.name)
	}
	return names
}

func probes(o Options) []probe {
	return append(cryptoProbes(o), ownProbes(o)...)
}

// Measure runs the probes in rounds, so that a disturbance of some seconds does
// not hit all measurements of one thing. Each result is the median of its
// rounds, with their range. When ctx ends, what there is is returned.
func Measure(ctx context.Context, o Options) ([]record.Measurement, []record.Finding, error) {
	o.Rounds = cmp.Or(o.Rounds, sched.Rounds{Count: DefaultRounds})
	o.DiskBytes = cmp.Or(o.DiskBytes, 256<<20)
	s := &series{values: map[string][]record.Measurement{}}
	left := slices.DeleteFunc(probes(o), func(p probe) bool { return !alg.Match(o.Only, p.name) })
	if len(left) == 0 {
		return nil, nil, fmt.Errorf("no probe matches %q", o.Only)
	}
	for round := range o.Rounds.Each() {
		if round > 0 && !slices.ContainsFunc(left, func(p probe) bool { return !p.once }) || ctx.Err() != nil {
			break
		}
		for i := 0; i < len(left) && ctx.Err() == nil; i++ {
			if left[i].once && round > 0 {
				continue
			}
			if o.Progress != nil {
				o.Progress(left[i].name)
			}
			if !s.run(ctx, left[i]) {
				left = slices.Delete(left, i, i+1)
				i--
			}
		}
	}
	return s.medians(), s.findings, nil
}

// series collects the rounds.
type series struct {
	order    []string
	values   map[string][]record.Measurement
	findings []record.Finding
}

// run runs one probe. False means that there is no use in trying again.
func (s *series) run(ctx context.Context, p probe) bool {
	results, err := p.run(ctx)
	if ctx.Err() != nil {
		return true
	}
	if err != nil {
		s.findings = append(s.findings, record.Finding{What: p.name + " is not measured", Why: err.Error()})
		return false
	}
	for _, m := range results {
		if s.values[m.Name] == nil {
			s.order = append(s.order, m.Name)
		}
		s.values[m.Name] = append(s.values[m.Name], m)
	}
	return true
}

func (s *series) medians() []record.Measurement {
	var out []record.Measurement
	for _, name := range s.order {
		all := slices.SortedFunc(slices.Values(s.values[name]), func(a, b record.Measurement) int { return cmp.Compare(a.Value, b.Value) })
		m := all[len(all)/2]
		if len(all)%2 == 0 {
			m.Value = (all[len(all)/2-1].Value + m.Value) / 2
		}
		if m.N = len(all); m.N > 1 {
			m.Lo, m.Hi = all[0].Value, all[len(all)-1].Value
		}
		out = append(out, m)
	}
	return out
}
