//go:build linux

package prove

import (
	"fmt"
	"io"
	"slices"

	"sshpace/internal/base/alg"
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
		fmt.Fprintf(out, "# copies move %s; their MB/s include the login\n", p.size)
	}
	switch n := len(p.methods[0].speeds); {
	case n == 1:
		fmt.Fprintln(out, fmt.Sprintf("# one round gives no interval; use --rounds %d", stats.MinExact))
	case n < stats.MinExact:
		fmt.Fprintf(out, "# %d rounds give no 95 %% interval, but a range; use --rounds %d or more\n", n, stats.MinExact)
	}
}

// methodJSON is a method for programs: ratios of the advised choice to the present one, of
// speed, and of the present one to the advised one, of CPU time.
type methodJSON struct {
	Name       string          `json:"name"`
	Throughput float64         `json:"present_bytes_per_s,omitempty"`
	Speed      *stats.Interval `json:"throughput_ratio,omitempty"`
	Cost       *stats.Interval `json:"cost_ratio,omitempty"`
	Verdict    stats.Verdict   `json:"verdict,omitempty"` // on the speed
	Failed     int             `json:"failed,omitempty"`
	Why        string          `json:"why,omitempty"`
}

// json writes the proof for programs.
func (p *proof) json(out io.Writer) error {
	methods := []methodJSON{}
	for _, m := range p.methods {
		j := methodJSON{Name: m.name, Failed: m.failures, Why: m.why}
		if len(m.speeds) > 0 {
			q := stats.HodgesLehmann(m.speeds).Exp()
			j.Throughput, j.Speed, j.Verdict = stats.Median(m.speed), &q, stats.NotEnough
			if q.N >= stats.MinExact {
				j.Verdict = q.Verdict()
			}
		}
		if len(m.savings) > 0 {
			q := stats.HodgesLehmann(m.savings).Exp()
			j.Cost = &q
		}
		methods = append(methods, j)
	}
	return termsafe.WriteJSON(out, struct {
		Schema  string       `json:"schema"`
		Target  string       `json:"target"`
		Present alg.Suite    `json:"present"`
		Advised alg.Suite    `json:"advised"`
		Methods []methodJSON `json:"methods"`
		Left    []string     `json:"not_measured,omitempty"`
	}{"sshpace.proof/1", p.target, p.suites[0], p.suites[1], methods, p.left}, "  ")
}

// judged is what the rule for all ratios says of one.
func judged(q stats.Interval, more, less string) string {
	switch v := q.Verdict(); {
	case q.N < stats.MinExact:
		return stats.NotEnough.Called(more, less)
	case v == stats.Equal:
		return fmt.Sprintf("equal within %.0f %%", 100*stats.Margin)
	default:
		return v.Called(more, less)
	}
}
