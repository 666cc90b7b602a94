package findings

import (
	"fmt"
	"io"
	"math"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/bench/login"
)

// compareSchema names the layout of a comparison's JSON form.
const compareSchema = "sshpace.handshake-compare/1"

// Comparison relates logins of several files to those of the first.
type LoginComparison struct {
	Schema string        `json:"schema"`
	Files  []string      `json:"files"` // the first is what the others are related to
	Kinds  []LoginChange `json:"kinds"` // that all files have
	Only   []OnlyLogin   `json:"not_compared,omitempty"`
}

// Only is a kind of login that some files have no figure of.
type OnlyLogin struct {
	Factor string   `json:"factor,omitempty"`
	Level  string   `json:"level"`
	Files  []string `json:"in_files"` // that have it
}

// Change is what became of one kind of login.
type LoginChange struct {
	Factor string         `json:"factor,omitempty"`
	Level  string         `json:"level"`
	CPU    []login.Figure `json:"cpu_ratio"`  // of both sides together, of each file but the first
	Wall   []login.Figure `json:"wall_ratio"` // likewise
}

// levelDoubt is how far two runs on one machine differ as a whole, as a part of a ratio: runs
// of one build, within two hours of a machine whose other guests came and went, were up to 17 %
// apart in every kind.
const levelDoubt = 0.2

// Compare relates reports to the first one.
func CompareLogins(files []string, reports []*Login) *LoginComparison {
	c := &LoginComparison{Schema: compareSchema, Files: files}
	for _, base := range reports[0].Results {
		change := LoginChange{Factor: base.Factor, Level: base.Level}
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
	c.Only = only(files, reports)
	return c
}

// only lists the kinds of login that some of the files lack.
func only(files []string, reports []*Login) (out []OnlyLogin) {
	for i, r := range reports {
		for _, kind := range r.Results {
			o := OnlyLogin{Factor: kind.Factor, Level: kind.Level}
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
func (r *Login) kind(k login.Result) (login.Result, bool) {
	for _, other := range r.Results {
		if other.Factor == k.Factor && other.Level == k.Level && other.Wall.N > 0 {
			return other, true
		}
	}
	return login.Result{}, false
}

// sum is the CPU time of both sides, or the client's where the server's is not known.
func sum(r login.Result) login.Figure {
	f := r.ClientCPU
	if s := r.ServerCPU; s != nil {
		half := math.Hypot(f.Hi-f.Lo, s.Hi-s.Lo) / 2
		f.Value += s.Value
		f.Lo, f.Hi = f.Value-half, f.Value+half
	}
	return f
}

// ratio is a/b with the doubt of both, and that about the level of both runs.
func ratio(a, b login.Figure) login.Figure {
	v := a.Value / b.Value
	part := math.Sqrt(square((a.Hi-a.Lo)/2/a.Value) + square((b.Hi-b.Lo)/2/b.Value) + square(levelDoubt))
	return login.Figure{Value: v, Lo: v * (1 - part), Hi: v * (1 + part), N: min(a.N, b.N)}
}

func square(x float64) float64 { return x * x }

// told says what a ratio tells by itself.
func told(f login.Figure) string {
	return map[stats.Verdict]string{stats.Better: "more", stats.Worse: "less", stats.Equal: "equal", stats.NotEnough: "~"}[stats.Interval(f).Verdict()]
}

// JSON writes the comparison.
func (c *LoginComparison) JSON(w io.Writer) error { return termsafe.WriteJSON(w, c, " ") }

// Text writes the comparison for people.
func (c *LoginComparison) Text(w io.Writer) error {
	var b strings.Builder
	b.WriteString("LOGINS  ")
	folded(&b, fmt.Sprintf("against %s: CPU time of both sides; each ratio by itself, with %.0f %% doubt about the level of the runs; ~: not enough data", c.Files[0], 100*levelDoubt))
	b.WriteString("\n")
	factor := ""
	for _, k := range c.Kinds {
		if k.Factor != factor {
			factor = k.Factor
			fmt.Fprintf(&b, "\n%s\n", strings.ToUpper(factor))
		}
		line := fmt.Sprintf("%-44s", k.Level)
		for _, f := range k.CPU {
			line += fmt.Sprintf("  %5.2f +-%.2f %-5s", f.Value, (f.Hi-f.Lo)/2, told(f))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	for _, o := range c.Only {
		fmt.Fprintf(&b, "\nonly in %s: %s\n", strings.Join(o.Files, ", "), strings.TrimSpace(o.Factor+" "+o.Level))
	}
	_, err := w.Write(termsafe.Text([]byte(b.String())))
	return err
}
