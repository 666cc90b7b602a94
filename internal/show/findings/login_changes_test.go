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
