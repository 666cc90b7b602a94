// Package lab carries out a plan: it asks for the next step, lets a driver do it, checks the
// negotiated suite, and passes every record on. It knows the world only through the driver.
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
	// Drain, when done, lets the running trial finish and then stops. It may be nil.
	Drain context.Context
	Now   func() time.Time // nil: time.Now
}

// check marks a sample with another suite than the wanted one: it is never averaged in (OpenSSH
// regress/rekey.sh does the same).
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
