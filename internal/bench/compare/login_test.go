package compare_test

import (
	"math"
	"strings"
	"testing"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/compare"
)

// loginKinds are so many kinds of login that take 10 ms of CPU time within 0.1 %, the first of them
// a factor more.
func loginKinds(factor float64, kinds int) (out []compare.LoginKind) {
	for i := range kinds {
		cpu := 10.0
		if i == 0 {
			cpu *= factor
		}
		f := stats.Interval{Value: cpu, Lo: 0.999 * cpu, Hi: 1.001 * cpu, N: 9}
		out = append(out, compare.LoginKind{Level: strings.Repeat("x", i+1), Client: f, Wall: f})
	}
	return out
}

// What is called more must hold for all kinds together: one of many that is it by itself only is
// not. Runs of one build that are 17 % apart in every kind are told apart in none.
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

// The interval of exact logins is the doubt about the level of two runs: as a part, 1.96 · √2 · 6.6
// % = 20 %.
func TestLoginsHaveTheDoubtOfTheirRuns(t *testing.T) {
	i := compare.Logins([]string{"a", "b"}, [][]compare.LoginKind{loginKinds(1, 1), loginKinds(1, 1)}).Kinds[0].CPU[0]
	if math.Abs(i.Hi-1.2) > 0.002 || math.Abs(i.Lo-1/1.2) > 0.002 || math.Abs(compare.LoginFloor()-0.2) > 0.002 {
		t.Errorf("%v, and a floor of %v", i, compare.LoginFloor())
	}
}

// A login whose server's CPU time is not known is no cheaper for it: the client's is compared, and
// that is said.
func TestLoginsAreComparedByWhatIsKnown(t *testing.T) {
	server := stats.Interval{Value: 20, Lo: 20, Hi: 20, N: 9}
	known := loginKinds(1, 1)
	known[0].Server = &server
	for _, files := range [][][]compare.LoginKind{{known, loginKinds(1, 1)}, {loginKinds(1, 1), known}, {known, known}} {
		k := compare.Logins([]string{"a", "b"}, files).Kinds[0]
		if math.Abs(k.CPU[0].Value-1) > 1e-6 || k.ClientAlone != (files[0][0].Server == nil || files[1][0].Server == nil) {
			t.Errorf("%v, of the client alone: %v", k.CPU[0], k.ClientAlone)
		}
	}
}
