package choice

import (
	"testing"

	"sshpace/internal/verdict/rank"
)

// A change is advised where it gains something for sure, or what is used now is
// not allowed or unknown.
func TestUncertain(t *testing.T) {
	tie, gain := rank.Gain{Tie: true}, rank.Gain{}
	for _, c := range []struct {
		name    string
		present int
		gains   []rank.Gain
		want    bool
	}{
		{"told apart by letters, but not by the gain", 3, []rank.Gain{tie}, true},
		{"one direction gains", 3, []rank.Gain{tie, gain}, false},
		{"among the best", 0, []rank.Gain{tie}, false},
		{"not in the policy", -1, []rank.Gain{tie}, false},
		{"not measured", 3, nil, false},
	} {
		x := Choice{Options: make([]Option, 5), Tied: 2, Present: Present{Option: c.present}, Gains: c.gains}
		if got := x.Uncertain(); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
