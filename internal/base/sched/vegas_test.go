package sched_test

import (
	"testing"
	"time"

	"sshpace/internal/base/sched"
)

// What a receiver keeps waiting is not worth having under way, what the way takes is.
func TestWorth(t *testing.T) {
	var w sched.Vegas
	for _, step := range []struct {
		under int
		took  time.Duration
		want  int
	}{
		{1000, 10 * time.Millisecond, 2000}, // all of it, as far as is known
		{1000, 100 * time.Millisecond, 200},
		{1000, 5 * time.Millisecond, 2000},
		{4000, 10 * time.Millisecond, 4000},
		{1000, 0, 2000},
	} {
		if got := w.BestInFlight(step.under, step.took); got != step.want {
			t.Errorf("%d bytes, %v: %d, want %d", step.under, step.took, got, step.want)
		}
	}
}
