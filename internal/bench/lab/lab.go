// Package lab carries out a plan: it asks it what to do next, has a driver do it,
// checks what was negotiated, and hands every record on. It knows the world only
// through the driver.
package lab

import (
	"context"
	"fmt"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Params of a run.
type Params struct {
	Target  string        // label for the trials
	Elapsed time.Duration // measuring time that a resumed file has already spent
	// Drain, when done, lets the trial that is running finish and then stops.
	// It may be nil.
	Drain context.Context
	Now   func() time.Time // nil: time.Now
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
