package findings

import (
	"fmt"
	"io"
	"math"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/login"
	"sshpace/internal/show/document"
)

// compareSchema names the layout of a comparison's JSON form.
const compareSchema = "sshpace.login-compare/1"

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
	Factor string           `json:"factor,omitempty"`
	Level  string           `json:"level"`
	CPU    []stats.Interval `json:"cpu_ratio"`  // of both sides together, of each file but the first
	Wall   []stats.Interval `json:"wall_ratio"` // likewise
	// Verdicts on CPU: more, less, equal or not enough data.
	Verdicts []string `json:"verdicts"`

	cpu []stats.Estimate // CPU, as it is judged
}

// levelDoubt is how far two runs on one machine differ as a whole, as a part of a ratio, in 95 %: runs
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
				cpu := ratio(bothCPU(other), bothCPU(base))
				change.cpu, change.CPU = append(change.cpu, cpu), append(change.CPU, cpu.Interval())
				change.Wall = append(change.Wall, ratio(other.Wall, base.Wall).Interval())
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

// bothCPU is the CPU time of both sides, or the client's where the server's is not known.
func bothCPU(r login.Result) stats.Interval {
	f := r.ClientCPU
	if s := r.ServerCPU; s != nil {
		half := math.Hypot(f.Hi-f.Lo, s.Hi-s.Lo) / 2
		f.Value += s.Value
		f.Lo, f.Hi = f.Value-half, f.Value+half
	}
	return f
}

// ratio is a/b with the doubt of both, and that about the level of both runs.
func ratio(a, b stats.Interval) stats.Estimate {
	arm := stats.Estimate{Err: 1}.Arm()
	of := func(i stats.Interval) stats.Estimate {
		return stats.Estimate{Log: math.Log(i.Value), Err: (i.Hi - i.Lo) / 2 / i.Value / arm, N: i.N}
	}
	return of(a).Over(of(b)).WithError(levelDoubt/arm, 0)
}

// judge gives each file's ratios of CPU time verdicts that hold for all kinds together.
func (c *LoginComparison) judge() {
	for file := range c.Files[1:] {
		var ratios []stats.Estimate
		for _, k := range c.Kinds {
			ratios = append(ratios, k.cpu[file])
		}
		for i, judged := range stats.Judge(ratios) {
			c.Kinds[i].Verdicts = append(c.Kinds[i].Verdicts, judged.Verdict.Called("more", "less"))
		}
	}
}

// JSON writes the comparison.
func (c *LoginComparison) JSON(w io.Writer) error { return termsafe.WriteJSON(w, c, " ") }

// Document is the comparison for people.
func (c *LoginComparison) Document() *document.Document {
	t := document.Table{Name: "logins", Title: "Logins compared", Columns: []document.Column{{Key: "factor", Head: "what differs", Minor: true}, {Key: "level", Head: "login", Terse: " ", Fit: text.Above}}}
	for _, name := range c.Files[1:] {
		cpu := document.Column{Key: "cpu_ratio", Head: "CPU time, " + termsafe.Line(name), Terse: "CPU time"}
		t.Columns = append(t.Columns, document.RatioColumns(cpu, "verdict", "takes")...)
	}
	d := &document.Document{Title: t.Title, Lead: []string{fmt.Sprintf("CPU time of both sides against %s, each login by itself; runs as a whole may differ by %.0f %%, which the intervals include.", c.Files[0], 100*levelDoubt)}}
	groups, order := map[string]*document.Table{}, []string{}
	for _, k := range c.Kinds {
		row := document.Row{Cells: []document.Cell{{Text: k.Factor}, {Text: termsafe.Line(k.Level)}}}
		for i := range k.CPU {
			row.Cells = append(row.Cells, document.Cell{Quantity: k.CPU[i].OrNil()}, document.Cell{Text: k.Verdicts[i]})
		}
		t.Rows = append(t.Rows, row)
		if groups[k.Factor] == nil {
			group := t
			group.Rows = nil
			groups[k.Factor], order = &group, append(order, k.Factor)
		}
		groups[k.Factor].Rows = append(groups[k.Factor].Rows, row)
	}
	d.Tables, d.Brief = []document.Table{t}, []document.Block{{Lines: d.Lead}}
	for _, factor := range order {
		d.Brief = append(d.Brief, document.Block{Title: factor, Table: groups[factor]})
	}
	var lacking []string
	for _, o := range c.Only {
		lacking = append(lacking, fmt.Sprintf("only in %s: %s", strings.Join(o.Files, ", "), strings.TrimSpace(o.Factor+" "+o.Level)))
	}
	d.Brief = document.Clean(append(d.Brief, document.Block{Lines: lacking}))
	return d
}
