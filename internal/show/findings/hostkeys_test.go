package findings

import (
	"errors"
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

// Failures of one kind are one line.
func TestSplitGroupsFailures(t *testing.T) {
	var out strings.Builder
	if err := Split(io.Discard, &out, tidy.SplitResult{Unresolved: []string{"a: no such host", "b: no such host", "c: server misbehaving"}}, "", true); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 could not be resolved (no such host; --no-resolve skips that): a, b\n", "1 could not be resolved (server misbehaving; --no-resolve skips that): c\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
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

// Two rounds give no interval, and a file costs nobody less than nothing.
func TestCostOfFewRounds(t *testing.T) {
	few := func(value float64) measured.Cost {
		i := stats.Interval{Value: value, Lo: value - 5e5, Hi: value + 5e5, N: 2}
		return measured.Cost{File: "known_hosts", Rounds: 2, OpenSSH: []measured.SSHCost{
			{Layout: "split", UpdateHostKeys: true, CPU: stats.Interval{Value: 7e6, Lo: 6e6, Hi: 8e6, N: 2}}, {Layout: "plain", AsItIs: true, UpdateHostKeys: true, CPU: stats.Interval{Value: 9e6, Lo: 8e6, Hi: 1e7, N: 2}, Extra: i},
		}}
	}
	for value, want := range map[float64]string{-6.81e5: "There is nothing to gain", 9e6: "Not enough data for the gain of splitting this file: use --rounds 6 or more."} {
		var text, json strings.Builder
		if err := errors.Join(Cost(&text, few(value), "OpenSSH"), CostJSON(&json, few(value), "OpenSSH")); err != nil {
			t.Fatal(err)
		}
		if out := text.String(); !strings.HasPrefix(out, want) || strings.Contains(out, "95 % intervals,") || strings.Contains(out, "(8.00") || strings.Contains(out, "-0.6") {
			t.Errorf("%g:\n%s", value, out)
		}
		if strings.Contains(json.String(), "8000000") {
			t.Errorf("%g: %s", value, json.String())
		}
	}
}
