//go:build linux

package campaign

import (
	"testing"
	"time"

	"sshpace/internal/bench/login"
)

// TestDuration: what does not fit into the budget is said before it begins.
func TestDuration(t *testing.T) {
	for _, c := range []struct {
		plan     login.Plan
		distinct int
		want     string
	}{
		{login.Plan{Budget: 58600 * time.Millisecond}, 39, "59s"},
		{login.Plan{Budget: 8 * time.Second}, 280, "280 logins at least, which takes longer than the budget"},
		{login.Plan{Rounds: 1, Budget: time.Second}, 1, "1 login"},
		{login.Plan{Rounds: 3, Budget: time.Second}, 5, "15 logins"},
	} {
		if got := duration(c.plan, c.distinct); got != c.want {
			t.Errorf("%+v: %q, want %q", c.plan, got, c.want)
		}
	}
}
