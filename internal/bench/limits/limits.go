//go:build linux

// Package limits measures the limits of a machine: the cryptographic primitives of its OpenSSL,
// copying in memory, a pipe, TCP on loopback, and reading a file. No SSH connection can be faster
// than the slowest of these that it goes through. It starts `openssl speed`, opens a socket on
// loopback and writes one file, which it removes.
package limits

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

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
	DiskDir   string       // directory for the file that is read
	DiskBytes unit.Bytes   // its size; 0 is 256 MiB
	Progress  func(probe string)
}

// probe is one thing to measure.
type probe struct {
	name string
	run  func(ctx context.Context) ([]record.Measurement, error) // the error is why it cannot be measured here
	once bool                                                    // too slow, or too steady, to be repeated
}

// Names lists the probes.
func Names() []string {
	var names []string
	for _, p := range probes(Options{}) {
		names = append(names, p.name)
	}
	return names
}

func probes(o Options) []probe {
	return append(ownProbes(o), cryptoProbes(o)...)
}

// Measure runs the probes in rounds, so that a disturbance of some seconds does not hit all
// measurements of one thing. Each result is the median of its rounds, with their range. When ctx
// ends, it returns the results so far.
func Measure(ctx context.Context, o Options) ([]record.Measurement, []record.Finding, error) {
	o.Rounds = cmp.Or(o.Rounds, sched.Rounds{Count: DefaultRounds})
	o.DiskBytes = cmp.Or(o.DiskBytes, 256<<20)
	var all []*series
	for _, p := range probes(o) {
		if alg.Match(o.Only, p.name) {
			all = append(all, &series{probe: p})
		}
	}
	if len(all) == 0 {
		return nil, nil, fmt.Errorf("unknown probe %q", strings.Join(o.Only, ","))
	}
	_ = sched.Loop[*series]{Rounds: o.Rounds, Due: func(round int) []*series {
		return slices.DeleteFunc(slices.Clone(all), func(s *series) bool { return s.absent != "" || s.once && round > 0 })
	}, Take: func(_ int, s *series) error {
		if o.Progress != nil {
			o.Progress(s.name)
		}
		s.take(ctx)
		return nil
	}}.Run(ctx)
	var figures []record.Measurement
	var findings []record.Finding
	for _, s := range all {
		figures = append(figures, s.medians()...)
		if s.absent != "" {
			findings = append(findings, record.Finding{What: s.name + " is not measured", Why: s.absent})
		}
	}
	return figures, findings, nil
}

// series holds the results of a probe's rounds.
type series struct {
	probe
	values []record.Measurement
	absent string // reason why another try is useless
}

// take runs the probe once.
func (s *series) take(ctx context.Context) {
	results, err := s.run(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.absent = err.Error()
	}
	s.values = append(s.values, results...)
}

func (s *series) medians() (out []record.Measurement) {
	for rest := s.values; len(rest) > 0; {
		name := rest[0].Name
		all := slices.DeleteFunc(slices.Clone(rest), func(m record.Measurement) bool { return m.Name != name })
		rest = slices.DeleteFunc(rest, func(m record.Measurement) bool { return m.Name == name })
		slices.SortFunc(all, func(a, b record.Measurement) int { return cmp.Compare(a.Value, b.Value) })
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
