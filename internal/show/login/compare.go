package login

import (
	"fmt"
	"io"
	"math"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/measure/handshake"
)

// compareSchema names the layout of a comparison's JSON form.
const compareSchema = "sshpace.handshake-compare/1"

// Comparison relates logins of several files to those of the first.
type Comparison struct {
	Schema string   `json:"schema"`
	Files  []string `json:"files"` // the first is what the others are related to
	Kinds  []Change `json:"kinds"` // that all files have
	Only   []Only   `json:"not_compared,omitempty"`
}

// Only is a kind of login that some files have no figure of.
type Only struct {
	Factor string   `json:"factor,omitempty"`
	Level  string   `json:"level"`
	Files  []string `json:"in_files"` // that have it
}

// Change is what became of one kind of login.
type Change struct {
	Factor string           `json:"factor,omitempty"`
	Level  string           `json:"level"`
	CPU    []stats.Interval `json:"cpu_ratio"`  // of both sides together, of each file but the first
	Wall   []stats.Interval `json:"wall_ratio"` // likewise
	// Verdicts on CPU: more, less, equal, or ~ for not enough data.
	Verdicts []string `json:"verdicts"`
}

// levelDoubt is how far two runs on one machine differ as a whole, as a part of a ratio: runs
// of one build, within two hours of a machine whose other guests came and went, were up to 17 %
// apart in every kind.
const levelDoubt = 0.2

// Compare relates reports to the first one.
func Compare(files []string, reports []*Report) *Comparison {
	c := &Comparison{Schema: compareSchema, Files: files}
	for _, base := range reports[0].Results {
		change := Change{Factor: base.Factor, Level: base.Level}
		for _, r := range reports[1:] {
			if other, ok := r.kind(base); ok {
				change.CPU = append(change.CPU, ratio(sum(other), sum(base)))
				change.Wall = append(change.Wall, ratio(other.Wall, base.Wall))
			}
		}
		if base.Wall.N > 0 && len(change.CPU) == len(reports)-1 {
			c.Kinds = append(c.Kinds, change)
		}
	}
	c.judge()
	c.Only = only(files, reports)
	return c
}

// only lists the kinds of login that some of the files lack.
func only(files []string, reports []*Report) (out []Only) {
	for i, r := range reports {
		for _, kind := range r.Results {
			o := Only{Factor: kind.Factor, Level: kind.Level}
			first := i
			for k, other := range reports {
				if _, ok := other.kind(kind); ok {
					o.Files, first = append(o.Files, files[k]), min(first, k)
				}
			}
			if first == i && len(o.Files) > 0 && len(o.Files) < len(files) {
				out = append(out, o)
			}
		}
	}
	return out
}

// kind is the result of the same kind of login.
func (r *Report) kind(k handshake.Result) (handshake.Result, bool) {
	for _, other := range r.Results {
		if other.Factor == k.Factor && other.Level == k.Level && other.Wall.N > 0 {
			return other, true
		}
	}
	return handshake.Result{}, false
}

// sum is the CPU time of both sides, or the client's where the server's is not known.
func sum(r handshake.Result) stats.Interval {
	f := r.ClientCPU
	if s := r.ServerCPU; s != nil {
		half := math.Hypot(f.Hi-f.Lo, s.Hi-s.Lo) / 2
		f.Value += s.Value
		f.Lo, f.Hi = f.Value-half, f.Value+half
	}
	return f
}

// ratio is a/b with the doubt of both, and that about the level of both runs.
func ratio(a, b stats.Interval) stats.Interval {
	v := a.Value / b.Value
	part := math.Sqrt(square((a.Hi-a.Lo)/2/a.Value) + square((b.Hi-b.Lo)/2/b.Value) + square(levelDoubt))
	return stats.Interval{Value: v, Lo: v * (1 - part), Hi: v * (1 + part), N: min(a.N, b.N)}
}

func square(x float64) float64 { return x * x }

// judge gives each file's ratios of CPU time verdicts that hold for all kinds together (Holm).
func (c *Comparison) judge() {
	for file := range c.Files[1:] {
		var ratios []stats.Estimate
		var ps []float64
		for _, k := range c.Kinds {
			f := k.CPU[file]
			e := stats.Estimate{Log: math.Log(f.Value), Err: (f.Hi - f.Lo) / 2 / f.Value / stats.Estimate{Err: 1}.Arm(), N: f.N}
			ratios, ps = append(ratios, e), append(ps, e.P())
		}
		for i, p := range stats.Holm(ps) {
			k := &c.Kinds[i]
			k.Verdicts = append(k.Verdicts, words[k.CPU[file].Among(ratios[i].Adjusted(p))])
		}
	}
}

// words are the verdicts on CPU time, of which more is no better.
var words = map[stats.Verdict]string{stats.Better: "more", stats.Worse: "less", stats.Equal: "equal", stats.NotEnough: "~"}

// JSON writes the comparison.
func (c *Comparison) JSON(w io.Writer) error { return termsafe.WriteJSON(w, c, " ") }

// Text writes the comparison for people.
func (c *Comparison) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString("LOGINS  ")
	folded(&b, fmt.Sprintf("against %s: CPU time of both sides; more and less hold for all kinds together, with %.0f %% doubt about the level of the runs; ~: not enough data", c.Files[0], 100*levelDoubt))
	b.WriteString("\n")
	factor := ""
	for _, k := range c.Kinds {
		if k.Factor != factor {
			factor = k.Factor
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(factor))
		}
		line := fmt.Sprintf("%-44s", k.Level)
		for i, f := range k.CPU {
			line += fmt.Sprintf("  %5.2f +-%.2f %-5s", f.Value, (f.Hi-f.Lo)/2, k.Verdicts[i])
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, o := range c.Only {
		fmt.Fprintf(&b, "\nonly in %s: %s\n", strings.Join(o.Files, ", "), strings.TrimSpace(o.Factor+" "+o.Level))
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}
