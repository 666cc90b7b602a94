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

// Check is one line of a comparison in one file, for a gate.
type Check struct {
	Line
	*Ratio
	File string
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

// Quantity returns what the limit is one of.
func (l Limit) Quantity() Quantity {
	if l.Lines == cpuLines {
		return CPU
	}
	return Speed
}

// String returns a limit as it is typed.
func (l Limit) String() string { return fmt.Sprintf("%s:%g%%", l.Lines, l.Percent) }

// MarshalText writes it so.
func (l Limit) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

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
func (l Limit) holds(c Check) bool {
	switch {
	case c.Ratio.Verdict == "" || c.Quantity != l.Quantity():
		return false
	case l.Lines == "transfers" || l.Lines == "logins":
		return (c.Table == Kex) == (l.Lines == "logins")
	}
	return true
}

// Of judges one line. A slowdown must hold for all lines together, because any of them would fail
// the gate. Its absence is required of each line alone, because all must pass (Berger,
// Technometrics 24, 1982).
func (l Limit) Of(c Check) Outcome {
	limit := 1 / (1 + l.Percent/100)
	switch together := c.speed(c.Together); {
	case together.Lo > 0 && together.Hi < limit:
		return Fail
	case c.own().Lo <= limit:
		return Inconclusive
	}
	return Pass
}

// Gate reports whether anything is slower by more than a limit. It passes only if nothing is; if
// the data do not suffice, it neither passes nor fails.
type Gate struct {
	Limit   Limit    `json:"limit"` // such as slower:5%
	Outcome Outcome  `json:"outcome"`
	Passes  *float64 `json:"passes_pct,omitempty"` // the least limit that none of the lines reaches; nil where one is unknown
	Lines   []Check  `json:"-"`                    // those that it looked at
	Failed  []Check  `json:"-"`                    // slower by more than the limit, slowest first
	Open    []Check  `json:"-"`                    // may be slower by more than the limit, or not; least known first
	CPU     *Limit   `json:"-"`                    // gate of CPU time, which the files can decide where this one is open; nil for none
}

// Judge checks the lines that a limit selects, and keeps the outcomes.
func (c *Comparison) Judge(l Limit) *Gate {
	c.Gate = c.gate(l)
	for _, check := range c.Gate.Lines {
		check.Outcome = l.Of(check)
	}
	if c.Gate.Outcome == Inconclusive && l.Quantity() != CPU {
		other := c.gate(Limit{Lines: cpuLines, Percent: l.Percent})
		if len(other.Lines) > 0 && other.Outcome != Inconclusive {
			c.Gate.CPU = &other.Limit
		}
	}
	return c.Gate
}

// gate judges the lines that a limit selects.
func (c *Comparison) gate(l Limit) *Gate {
	g, passes := &Gate{Limit: l, Outcome: Pass}, 0.0
	for _, line := range c.Lines {
		for k := range line.Ratios {
			check := Check{line, &line.Ratios[k], c.Inputs[k+1].Label}
			if !l.holds(check) {
				continue
			}
			g.Lines = append(g.Lines, check)
			passes = math.Max(passes, 100*(1/math.Max(0, check.own().Lo)-1))
			switch l.Of(check) {
			case Fail:
				g.Failed = append(g.Failed, check)
			case Inconclusive:
				g.Open = append(g.Open, check)
			}
		}
	}
	slices.SortStableFunc(g.Failed, func(a, b Check) int { return cmp.Compare(a.speed(a.Together).Value, b.speed(b.Together).Value) })
	slices.SortStableFunc(g.Open, func(a, b Check) int { return cmp.Compare(a.own().Lo, b.own().Lo) })
	switch {
	case len(g.Failed) > 0:
		g.Outcome = Fail
	case len(g.Open) > 0:
		g.Outcome = Inconclusive
	}
	if !math.IsInf(passes, 0) {
		g.Passes = &passes
	}
	return g
}

// speed returns an interval of the line as one of speeds: less than 1 is worse.
func (c Check) speed(i stats.Interval) stats.Interval {
	if c.Quantity == Speed {
		return i
	}
	return i.Inverse()
}

// own returns the interval of the line by itself, as one of speeds. Nothing bounds it where it
// rests on single values.
func (c Check) own() stats.Interval {
	if c.Err == 0 {
		return stats.Interval{}
	}
	return c.speed(c.Interval())
}

// Title names a line.
func (c Check) Title() string {
	name := strings.TrimSpace(c.Factor + " " + c.Name)
	switch c.Table {
	case Overall:
		name = "everything"
	case Kex:
		name = "login with " + name
	}
	return name + " in " + c.File
}

// times words an interval of the line.
func (c Check) times(i stats.Interval) string {
	switch {
	case c.Quantity == Speed:
		return i.Times() + " as fast"
	case c.ClientAlone:
		return i.Times() + " the client's CPU time"
	}
	return i.Times() + " the CPU time"
}

// String describes a failed line.
func (c Check) String() string {
	than := ""
	if c.ByRest {
		than = " as the rest"
	}
	return c.Title() + ": " + c.times(c.Together) + than
}

// Range describes the data of an open line.
func (c Check) Range() string {
	if !c.own().Says() {
		return "too few runs"
	}
	return c.times(c.Interval())
}
