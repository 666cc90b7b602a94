// Package lab carries out a plan: it asks a Planner what to do next, has a
// Driver do it, checks what was negotiated, and hands every record on. It
// knows the world only through these two interfaces.
package lab

import (
	"context"
	"fmt"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Planner decides, without a clock or I/O of its own, what to measure next.
type Planner interface {
	// Next returns the next trial, or false when the plan is complete. elapsed
	// is the measuring time spent so far. ID and Target are filled in by Run.
	Next(elapsed time.Duration) (record.Trial, bool)
	// Observe tells the planner what a trial showed; also used to replay a file.
	Observe(record.Trial, record.Sample)
}

// Driver makes one connection and measures it. A trial that fails is a sample
// with an outcome; an error means that the lab itself is broken.
type Driver interface {
	Run(ctx context.Context, t record.Trial) (record.Sample, error)
}

// Params of a run.
type Params struct {
	Target  string        // label for the trials
	FirstID int           // ID of the first trial; a resumed file goes on counting
	Elapsed time.Duration // measuring time that a resumed file has already spent
	// Drain, when done, lets the trial that is running finish and then stops.
	// It may be nil.
	Drain context.Context
}

// Run carries out the plan until it is complete, drained or cancelled.
func Run(ctx context.Context, params Params, p Planner, d Driver, sink record.Sink) error {
	if params.Drain == nil {
		params.Drain = ctx
	}
	start := time.Now()
	for id := params.FirstID; params.Drain.Err() == nil; id++ {
		t, ok := p.Next(params.Elapsed + time.Since(start))
		if !ok {
			return nil
		}
		t.ID, t.Target = id, params.Target
		if err := sink(record.Record{Trial: &t}); err != nil {
			return fmt.Errorf("write trial: %w", err)
		}
		sample, err := d.Run(ctx, t)
		if err != nil {
			return err
		}
		sample.Trial = id
		check(t, &sample)
		if err := sink(record.Record{Sample: &sample}); err != nil {
			return fmt.Errorf("write sample: %w", err)
		}
		p.Observe(t, sample)
		if ctx.Err() != nil {
			return nil
		}
	}
	return nil
}

// check marks a sample whose negotiated names are not the wanted ones: it is
// never averaged in (OpenSSH regress/rekey.sh does the same).
func check(t record.Trial, s *record.Sample) {
	if s.Outcome != record.OK {
		return
	}
	want, got := t.Asked(), s.Got
	want = alg.NewSuite(want.Cipher, want.MAC, want.Kex)
	if got.HostKey = ""; got != want {
		s.Outcome = record.Mismatched
		s.Detail = fmt.Sprintf("wanted %s, negotiated %s", want, got)
	}
}
