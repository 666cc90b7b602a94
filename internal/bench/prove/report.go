//go:build linux

package prove

import (
	"fmt"
	"io"
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// write prints the ratios with their intervals (Hodges and Lehmann on the logs of
// the rounds) and a verdict each, as comments of a configuration.
func (p *proof) write(out io.Writer) {
	fmt.Fprintf(out, "\n# proof on %s: %s (now)\n# and %s (advised) in turns\n", termsafe.OneLine(p.target), p.suites[0].Bulk(), p.suites[1].Bulk())
	t := text.Table{Columns: []text.Column{{}, {}, {}, {}}}
	for _, m := range p.methods {
		if len(m.speeds) == 0 {
			t.Rows = append(t.Rows, []string{"# " + m.name, "no result"})
			continue
		}
		q, now := stats.HodgesLehmann(m.speeds).Exp(), stats.Median(m.speed)
		t.Rows = append(t.Rows, []string{"# " + m.name, fmt.Sprintf("%s -> %s MB/s", unit.Figure(now/1e6), unit.Figure(now*q.Value/1e6)), q.Times(), judged(q, "faster", "slower")})
		if len(m.savings) > 0 {
			q := stats.HodgesLehmann(m.savings).Exp()
			t.Rows = append(t.Rows, []string{"#", "CPU time of both sides", q.Times(), judged(q, "less", "more")})
		}
	}
	fmt.Fprint(out, t.Text(0))
	for _, m := range p.methods {
		if m.failures > 0 {
			fmt.Fprintf(out, "# %s failed %d times: %s\n", m.name, m.failures, termsafe.OneLine(m.why))
		}
	}
	for _, line := range p.left {
		fmt.Fprintf(out, "# not measured: %s\n", termsafe.OneLine(line))
	}
	if slices.ContainsFunc(p.methods, func(m *method) bool { return !m.direct && len(m.speeds) > 0 }) {
		fmt.Fprintf(out, "# copies move %s; their MB/s include the login. More --rounds narrow the ranges\n", p.size)
	}
	switch n := len(p.methods[0].speeds); {
	case n == 1:
		fmt.Fprintln(out, "# one round gives no interval")
	case n < stats.MinExact:
		fmt.Fprintf(out, "# %d rounds give no 95 %% interval: the brackets hold their range\n", n)
	}
}

// judged is what the rule for all ratios says of one.
func judged(q stats.Interval, more, less string) string {
	if q.N < stats.MinExact {
		return "too few rounds to say"
	}
	return map[stats.Verdict]string{
		stats.Better: more, stats.Worse: less, stats.NotEnough: "not enough data",
		stats.Equal: fmt.Sprintf("equal within %.0f %%", 100*stats.Margin),
	}[q.Verdict()]
}
