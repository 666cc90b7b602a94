package findings

import (
	"fmt"
	"strings"
	"testing"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
)

// Kinds of login that only one file has are named, not dropped.
func TestOnly(t *testing.T) {
	figure := stats.Interval{Value: 10, Lo: 9.99, Hi: 10.01, N: 9}
	of := func(levels ...string) *Login {
		r := &Login{}
		for _, level := range levels {
			r.Results = append(r.Results, login.Result{Factor: "kex", Level: level, Wall: figure, ClientCPU: figure})
		}
		return r
	}
	c := CompareLogins([]string{"a", "b"}, []*Login{of("curve25519-sha256", "dh14"), of("curve25519-sha256", "mlkem768x25519-sha256")})
	text := fmt.Sprint(c.Document().Brief)
	for _, want := range []string{"only in a: kex dh14", "only in b: kex mlkem768x25519-sha256"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing:\n%s", want, text)
		}
	}
	if len(c.Kinds) != 1 || len(c.Only) != 2 {
		t.Errorf("%d compared, %d not", len(c.Kinds), len(c.Only))
	}
}

// What is called more must hold for all kinds together: one of many that is it by itself only is not.
func TestVerdictsHoldTogether(t *testing.T) {
	of := func(factor float64, kinds int) *Login {
		r := &Login{}
		for i := range kinds {
			cpu := 10.0
			if i == 0 {
				cpu *= factor
			}
			f := stats.Interval{Value: cpu, Lo: 0.999 * cpu, Hi: 1.001 * cpu, N: 9}
			r.Results = append(r.Results, login.Result{Level: strings.Repeat("x", i+1), Wall: f, ClientCPU: f})
		}
		return r
	}
	for _, c := range []struct {
		factor float64
		kinds  int
		want   string
	}{{1.3, 1, "more"}, {1.3, 20, "not enough data"}, {3, 20, "more"}, {1, 20, "not enough data"}} {
		got := CompareLogins([]string{"a", "b"}, []*Login{of(1, c.kinds), of(c.factor, c.kinds)}).Kinds[0].Verdicts[0]
		if got != c.want {
			t.Errorf("%g times one of %d kinds: %s, want %s", c.factor, c.kinds, got, c.want)
		}
	}
}
