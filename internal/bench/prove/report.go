//go:build linux

package prove

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// write prints the ratios with their intervals (Hodges and Lehmann on the logs of the rounds) and a
// verdict each, as comments of a configuration.
func (p *proof) write(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "\n# proof on %s: %s (now)\n# and %s (advised) in turns\n", termsafe.OneLine(p.target), p.suites[0].Bulk(), p.suites[1].Bulk())
	t := text.Table{Columns: []text.Column{{}, {}, {}, {}}}
	for _, r := range p.results() {
		if r.Speed == nil {
			t.Rows = append(t.Rows, []string{"# " + r.Name, "no result"})
			continue
		}
		speeds := fmt.Sprintf("%s -> %s", unit.Digits(r.Throughput/1e6), unit.Throughput(r.Throughput*r.Speed.Value))
		t.Rows = append(t.Rows, []string{"# " + r.Name, speeds, r.Speed.Times(), judged(*r.Speed, "faster", "slower")})
		if r.Cost != nil {
			t.Rows = append(t.Rows, []string{"#", "CPU time of both sides", r.Cost.Times(), judged(*r.Cost, "less", "more")})
		}
	}
	fmt.Fprint(&out, t.Text(0))
	for _, m := range p.methods {
		if m.failures > 0 {
			fmt.Fprintf(&out, "# %s failed %d times: %s\n", m.name, m.failures, termsafe.OneLine(m.why))
		}
	}
	for _, line := range p.left {
		fmt.Fprintf(&out, "# not measured: %s\n", termsafe.OneLine(line))
	}
	if slices.ContainsFunc(p.methods, func(m *method) bool { return !m.direct && len(m.speeds) > 0 }) {
		fmt.Fprintf(&out, "# copies move %s; their MB/s include the login\n", p.Size)
	}
	switch n := len(p.methods[0].speeds); {
	case n == 1:
		fmt.Fprintf(&out, "# one round gives no interval; use --rounds %d\n", stats.MinExact)
	case n < stats.MinExact:
		fmt.Fprintf(&out, "# %d rounds give no 95 %% interval, but a range; use --rounds %d or more\n", n, stats.MinExact)
	default:
		if more := p.enough(); more > 0 {
			fmt.Fprintf(&out, "# for more data: --rounds %d\n", more)
		}
	}
	_, err := out.WriteTo(w)
	return err
}

// enough is how many rounds would probably decide the open ratios: intervals shrink with the root
// of their number. 0: nothing is open.
func (p *proof) enough() (rounds int) {
	const most = 16 // times as many
	for _, r := range p.results() {
		if r.Speed != nil && r.Verdict == stats.NotEnough && r.Speed.Lo > 0 {
			arm := math.Log(r.Speed.Hi/r.Speed.Lo) / 2 / math.Log1p(stats.Margin)
			rounds = max(rounds, int(math.Ceil(float64(r.Speed.N)*min(most, max(2, arm*arm)))))
		}
	}
	return rounds
}

// result is the outcome of a method: the speed of the advised choice relative to the present one,
// and the CPU time of the present one relative to the advised one.
type result struct {
	Name       string          `json:"name"`
	Throughput float64         `json:"present_bytes_per_s,omitempty"`
	Speed      *stats.Interval `json:"throughput_ratio,omitempty"`
	Cost       *stats.Interval `json:"cost_ratio,omitempty"`
	Verdict    stats.Verdict   `json:"verdict,omitempty"` // on the speed
	Failed     int             `json:"failed,omitempty"`
	Why        string          `json:"why,omitempty"`
}

func (p *proof) results() []result {
	all := []result{}
	for _, m := range p.methods {
		r := result{Name: m.name, Failed: m.failures, Why: m.why}
		if len(m.speeds) > 0 {
			q := stats.HodgesLehmann(m.speeds).Exp()
			r.Throughput, r.Speed, r.Verdict = stats.Median(m.speed), &q, stats.NotEnough
			if q.N >= stats.MinExact {
				r.Verdict = q.Verdict()
			}
		}
		if len(m.savings) > 0 {
			q := stats.HodgesLehmann(m.savings).Exp()
			r.Cost = &q
		}
		all = append(all, r)
	}
	return all
}

// json writes the proof for programs.
func (p *proof) json(out io.Writer) error {
	return termsafe.WriteJSON(out, struct {
		Schema  string    `json:"schema"`
		Target  string    `json:"target"`
		Present alg.Suite `json:"present"`
		Advised alg.Suite `json:"advised"`
		Methods []result  `json:"methods"`
		Left    []string  `json:"not_measured,omitempty"`
	}{"sshpace.proof/1", p.target, p.suites[0], p.suites[1], p.results(), p.left}, "  ")
}

// judged words the verdict on a ratio.
func judged(q stats.Interval, more, less string) string {
	switch v := q.Verdict(); {
	case q.N < stats.MinExact:
		return stats.NotEnough.Called(more, less)
	case v == stats.Equal:
		return "equal within " + stats.MarginWords
	default:
		return v.Called(more, less)
	}
}
