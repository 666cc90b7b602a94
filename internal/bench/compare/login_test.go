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

// two compares the logins of two files.
func two(files ...[]compare.LoginKind) *compare.Comparison {
	return compare.OfLogins([]compare.Input{{Label: "a"}, {Label: "b"}}, files)
}

// What is called more must hold for all kinds together: one of many that is it by itself only is
// not. Runs of one build that are 17 % apart in every kind are told apart in none.
func TestLoginsAreJudgedTogether(t *testing.T) {
	for _, c := range []struct {
		factor float64
		kinds  int
		want   string
	}{{1.3, 1, "more"}, {1.3, 20, "not enough data"}, {3, 20, "more"}, {1 / 3.0, 20, "less"}, {1, 20, "not enough data"}, {1.17, 1, "not enough data"}} {
		l := two(loginKinds(1, c.kinds), loginKinds(c.factor, c.kinds)).Lines[0]
		if got := l.Verdict(l.Ratios[0]); got != c.want {
			t.Errorf("%g times one of %d kinds: %s, want %s", c.factor, c.kinds, got, c.want)
		}
	}
}

// The interval of exact logins is the doubt about the level of two runs: as a part, 1.96 · √2 · 6.6
// % = 20 %.
func TestLoginsHaveTheDoubtOfTheirRuns(t *testing.T) {
	c := two(loginKinds(1, 1), loginKinds(1, 1))
	i := c.Lines[0].Ratios[0].Interval()
	if math.Abs(i.Hi-1.2) > 0.002 || math.Abs(i.Lo-1/1.2) > 0.002 || math.Abs(c.Floor-20) > 0.2 {
		t.Errorf("%v, and a floor of %v", i, c.Floor)
	}
}

// A login whose server's CPU time is not known is no cheaper for it: the client's is compared, and
// that is said.
func TestLoginsAreComparedByWhatIsKnown(t *testing.T) {
	server := stats.Interval{Value: 20, Lo: 20, Hi: 20, N: 9}
	known := loginKinds(1, 1)
	known[0].Server = &server
	for _, files := range [][][]compare.LoginKind{{known, loginKinds(1, 1)}, {loginKinds(1, 1), known}, {known, known}} {
		l := two(files...).Lines[0]
		if math.Abs(l.Ratios[0].Value()-1) > 1e-6 || l.Quantity != compare.CPU || l.ClientAlone != (files[0][0].Server == nil || files[1][0].Server == nil) {
			t.Errorf("%v, of the client alone: %v", l.Ratios[0].Interval(), l.ClientAlone)
		}
	}
}

// Kinds of login that only one file has are named, not dropped. A gate of CPU time judges those
// that both have, and none by their wall time.
func TestLoginsOfOneFile(t *testing.T) {
	more := append(loginKinds(3, 2), compare.LoginKind{Factor: "kex", Level: "dh14", Wall: stats.Interval{Value: 1, N: 9}})
	c := two(loginKinds(1, 2), more)
	if len(c.Lines) != 4 || len(c.Only) != 1 || c.Only[0].Name != "dh14" || c.Only[0].Files[0] != 1 {
		t.Errorf("compared: %v, in one file only: %v", c.Lines, c.Only)
	}
	g := c.Judge(compare.Limit{Lines: "cpu", Percent: 5})
	if g.Outcome != compare.Fail || len(g.Lines) != 2 || len(c.Judge(slowerBy5).Lines) != 0 {
		t.Errorf("%s, of %d lines", g.Outcome, len(g.Lines))
	}
}
