package findings

import (
	"io"
	"strings"
	"testing"

	"sshpace/internal/base/stats"
	measured "sshpace/internal/bench/hostkeys"
	"sshpace/internal/ssh/knownhosts/tidy"
)

func TestSplitVerdictFailsOnNamesThatAreLost(t *testing.T) {
	var out strings.Builder
	if err := Split(io.Discard, &out, tidy.SplitResult{Unsafe: []string{`"a b" has blanks`}}, "", false); err == nil {
		t.Error("no error")
	}
	names := strings.Fields("a b c d e f g")
	if err := Split(io.Discard, &out, tidy.SplitResult{Kept: names, Missing: names, Unresolved: names, Unmatched: 2}, "", true); err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "a, b, c, d, e and 2 more"); got != 3 {
		t.Errorf("%d lists in\n%s", got, out.String())
	}
}

func TestCostAdvice(t *testing.T) {
	ms := func(lo, value, hi float64) stats.Interval {
		return stats.Interval{Value: value * 1e6, Lo: lo * 1e6, Hi: hi * 1e6, N: 9}
	}
	for _, c := range []struct {
		update, plain stats.Interval
		want, not     string
	}{
		{ms(-0.2, 0.1, 0.4), ms(-0.2, 0.1, 0.4), "nothing to gain", "UpdateHostKeys"},
		{ms(130, 137, 140), ms(3, 3.5, 4), "saves 137 ms", "nothing"},
		{ms(130, 137, 140), ms(3, 3.5, 4), "UpdateHostKeys no saves 126 ms", "nothing"},
		{ms(4, 5, 6), ms(3, 4.5, 6), "saves 5.00 ms", "UpdateHostKeys"},
	} {
		got := costAdvice(measured.Cost{OpenSSH: []measured.SSHCost{
			{Layout: "plain", AsItIs: true, UpdateHostKeys: true, Extra: c.update},
			{Layout: "hashed", UpdateHostKeys: true, Extra: ms(900, 900, 900)},
			{Layout: "plain", AsItIs: true, Extra: c.plain},
		}})
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("advice %q, want %q", got, c.want)
		}
	}
}
