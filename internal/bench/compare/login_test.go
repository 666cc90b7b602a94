package compare_test

import (
	"math"
	"strings"
	"testing"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/compare"
)

// loginKinds are so many kinds of login that take 10 ms of CPU time within 0.1 %, the first of them a factor more.
func loginKinds(factor float64, kinds int) (out []compare.LoginKind) {
	for i := range kinds {
		cpu := 10.0
		if i == 0 {
			cpu *= factor
		}
		f := stats.Interval{Value: cpu, Lo: 0.999 * cpu, Hi: 1.001 * cpu, N: 9}
		out = append(out, compare.LoginKind{Level: strings.Repeat("x", i+1), CPU: f, Wall: f})
	}
	return out
}

// What is called more must hold for all kinds together: one of many that is it by itself only is not. Runs of one
// build that are 17 % apart in every kind are told apart in none.
func TestLoginsAreJudgedTogether(t *testing.T) {
	for _, c := range []struct {
		factor float64
		kinds  int
		want   string
	}{{1.3, 1, "more"}, {1.3, 20, "not enough data"}, {3, 20, "more"}, {1 / 3.0, 20, "less"}, {1, 20, "not enough data"}, {1.17, 1, "not enough data"}} {
		got := compare.Logins([]string{"a", "b"}, [][]compare.LoginKind{loginKinds(1, c.kinds), loginKinds(c.factor, c.kinds)}).Kinds[0].Verdicts[0]
		if got != c.want {
			t.Errorf("%g times one of %d kinds: %s, want %s", c.factor, c.kinds, got, c.want)
		}
	}
}

// The interval of exact logins is the doubt about the level of two runs: as a part, 1.96 · √2 · 6.6 % = 20 %.
func TestLoginsHaveTheDoubtOfTheirRuns(t *testing.T) {
	i := compare.Logins([]string{"a", "b"}, [][]compare.LoginKind{loginKinds(1, 1), loginKinds(1, 1)}).Kinds[0].CPU[0]
	if math.Abs(i.Hi-1.2) > 0.002 || math.Abs(i.Lo-1/1.2) > 0.002 || math.Abs(compare.LoginFloor()-0.2) > 0.002 {
		t.Errorf("%v, and a floor of %v", i, compare.LoginFloor())
	}
}
