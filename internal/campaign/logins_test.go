//go:build linux

package campaign

import (
	"testing"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/login"
	"sshpace/internal/bench/rounds"
)

// TestDuration: what does not fit into the budget is said before it begins.
func TestDuration(t *testing.T) {
	for _, c := range []struct {
		plan     login.Plan
		distinct int
		want     string
	}{
		{login.Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Budget: 58600 * time.Millisecond}}}, 39, "59s"},
		{login.Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Budget: 8 * time.Second}}}, 280, "280 logins at least, which takes longer than the budget"},
		{login.Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 1}}}, 1, "1 login: at least 1s"},
		{login.Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 3}}, Pause: time.Second}, 5, "15 logins: at least 17s"},
	} {
		if got := duration(c.plan, c.distinct); got != c.want {
			t.Errorf("%+v: %q, want %q", c.plan, got, c.want)
		}
	}
}
