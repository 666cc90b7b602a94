package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/stats"
)

// Line is one line of a comparison for a gate: a ratio of speeds by itself, and the interval that
// decides about slower, which holds for all lines together.
type Line struct {
	Name, File    string // name and file
	Login         bool   // of logins, otherwise of transfers
	CPU           bool   // of CPU time for the same bytes: less than 1 is more of it, as of speeds
	ClientAlone   bool   // of the client's CPU time: the server's is not known everywhere
	Than          string // "" for the first file, otherwise the file to compare with
	Own, Together stats.Interval
}

// Outcome is the result of a gate, for one line or for all.
type Outcome string

// The outcomes.
const (
	Pass         Outcome = "pass"
	Fail         Outcome = "fail"
	Inconclusive Outcome = "inconclusive"
)

// Limit selects the lines of a gate, and the largest slowdown.
type Limit struct {
	Lines   string // slower: all speeds; transfers or logins: those alone; cpu: CPU time
	Percent float64
}

// limitLines are the names of the lines that a gate may check.
var limitLines = []string{"slower", "transfers", "logins", cpuLines}

// cpuLines selects CPU time, which no other limit includes: it is known well where other work hides
// how fast transfers are.
const cpuLines = "cpu"

// OfCPU reports whether the limit is one of CPU time.
func (l Limit) OfCPU() bool { return l.Lines == cpuLines }

// String returns a limit as it is typed.
func (l Limit) String() string { return fmt.Sprintf("%s:%g%%", l.Lines, l.Percent) }

// ParseLimit reads a limit as it is typed, such as "slower:5%"; nil for nothing.
func ParseLimit(text string) (*Limit, error) {
	if text == "" {
		return nil, nil
	}
	lines, number, _ := strings.Cut(text, ":")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	if !slices.Contains(limitLines, lines) || err != nil || !(percent >= 0 && percent < 1e6) {
		return nil, fault.Usage("use slower: and a percentage, such as slower:5%, or transfers:, logins: or cpu: for these alone", "cannot read --fail-on %q", text)
	}
	return &Limit{Lines: lines, Percent: percent}, nil
}

// holds reports whether the gate checks a line.
func (l Limit) holds(line Line) bool {
	if line.CPU || l.OfCPU() {
		return line.CPU && l.OfCPU()
	}
	return l.Lines == "slower" || line.Login == (l.Lines == "logins")
}

// Of judges one line. A slowdown must hold for all lines together, because any of them would fail
// the gate. Its absence is required of each line alone, because all must pass (Berger,
// Technometrics 24, 1982).
func (l Limit) Of(line Line) Outcome {
	limit := 1 / (1 + l.Percent/100)
	switch {
	case line.Together.Lo > 0 && line.Together.Hi < limit:
		return Fail
	case line.Own.Lo <= limit:
		return Inconclusive
	}
	return Pass
}

// Gate reports whether anything is slower by more than a limit. It passes only if nothing is; if
// the data do not suffice, it neither passes nor fails.
type Gate struct {
	Limit  Limit
	Lines  []Line
	Passes float64 // the least limit, in percent, that none of the lines reaches; +Inf where one is unknown
	Failed []Line  // slower by more than the limit, slowest first
	Open   []Line  // may be slower by more than the limit, or not; least known first
	CPU    *Limit  // gate of CPU time, which the files can decide where this one is open; nil for none
}

// Gate judges the lines that the limit selects.
func (l Limit) Gate(lines []Line) *Gate {
	g := &Gate{Limit: l}
	for _, line := range lines {
		if !l.holds(line) {
			continue
		}
		g.Lines = append(g.Lines, line)
		g.Passes = math.Max(g.Passes, 100*(1/math.Max(0, line.Own.Lo)-1))
		switch l.Of(line) {
		case Fail:
			g.Failed = append(g.Failed, line)
		case Inconclusive:
			g.Open = append(g.Open, line)
		}
	}
	slices.SortStableFunc(g.Failed, func(a, b Line) int { return cmp.Compare(a.Together.Value, b.Together.Value) })
	slices.SortStableFunc(g.Open, func(a, b Line) int { return cmp.Compare(a.Own.Lo, b.Own.Lo) })
	if g.Outcome() == Inconclusive && !l.OfCPU() {
		other := Limit{Lines: cpuLines, Percent: l.Percent}
		if judged := other.Gate(lines); len(judged.Lines) > 0 && judged.Outcome() != Inconclusive {
			g.CPU = &other
		}
	}
	return g
}

// Outcome judges all lines together: one failed line fails the gate, one open line leaves it open.
func (g *Gate) Outcome() Outcome {
	switch {
	case len(g.Failed) > 0:
		return Fail
	case len(g.Open) > 0:
		return Inconclusive
	}
	return Pass
}

// Title names a line.
func (l Line) Title() string { return l.Name + " in " + l.File }

// Shown returns an interval of the line for people: of CPU time, above 1 is more.
func (l Line) Shown(i stats.Interval) stats.Interval {
	if !l.CPU {
		return i
	}
	return i.Inverse()
}

// times words an interval of the line.
func (l Line) times(i stats.Interval) string {
	switch {
	case l.CPU && l.ClientAlone:
		return l.Shown(i).Times() + " the client's CPU time"
	case l.CPU:
		return l.Shown(i).Times() + " the CPU time"
	}
	return i.Times() + " as fast"
}

// String describes a failed line.
func (l Line) String() string { return l.Title() + ": " + l.times(l.Together) + l.Than }

// Range describes the data of an open line.
func (l Line) Range() string {
	if !l.Own.Says() {
		return "too few runs"
	}
	return l.times(l.Own)
}

// Lines returns all lines of the comparison.
func (c *Comparison) Lines() (lines []Line) {
	c.each(func(name string, login bool, k int, r Ratio) {
		l := Line{Name: name, File: c.Inputs[k+1].Label, Login: login, Own: r.Speed.Interval(), Together: r.Together}
		if r.ByRest {
			l.Than = " as the rest"
		}
		if r.Speed.Err == 0 {
			l.Own.Lo = 0 // one value says nothing about another
		}
		lines = append(lines, l)
	})
	return lines
}

// Floor is the smallest slowdown, as a share, that any amount of data could show: the differences
// of whole runs are in all lines.
func (c *Comparison) Floor() (least float64) {
	for k := range c.Inputs[1:] {
		least = max(least, math.Expm1(stats.Estimate{Err: c.level(k + 1)}.Arm()))
	}
	return least
}

// each visits the ratios of all tables, of each file after the first.
func (c *Comparison) each(visit func(name string, login bool, k int, r Ratio)) {
	look := func(name string, login bool, ratios []Ratio) {
		for k, r := range ratios {
			visit(name, login, k, r)
		}
	}
	look("everything", false, c.Overall)
	for _, groups := range [][]Group{c.Ciphers, c.MACs} {
		for _, g := range groups {
			look(g.Name, false, g.Ratios)
		}
	}
	for _, cell := range c.Cells {
		look(cell.Suite.String(), false, cell.Ratios)
	}
	for _, g := range c.Kex {
		look("login with "+g.Name, true, g.Ratios)
	}
}

// Shows returns the smallest slowdown that any line of the comparison could show, as a share; 0
// where none could show any.
func (c *Comparison) Shows() (least float64) {
	c.each(func(_ string, _ bool, _ int, r Ratio) { least = r.least(least) })
	return least
}
