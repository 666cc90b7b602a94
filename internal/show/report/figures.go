package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// figureSection lists the measurements that are no SSH trials, one row each, in
// the units of the programs that measured them. More files than fit beside each
// other make the lines longer: what is compared stays in one row.
func figureSection(w io.Writer, c *rank.Comparison) {
	if len(c.Figures) == 0 {
		return
	}
	say(w, "\nMachines, in the units of the programs that measured them")
	head := fmt.Sprintf("%-34s %-7s", "", "")
	for i := range c.Inputs {
		head += fmt.Sprintf(" %12s", string(rune('A'+i%26)))
	}
	if len(c.Inputs) == 2 {
		head += fmt.Sprintf(" %7s", "B/A")
	}
	row(w, "%s", head)
	for _, f := range c.Figures {
		line := fmt.Sprintf("%-34s %-7s", fit(f.Name, 34), f.Unit)
		for _, v := range f.Values {
			line += fmt.Sprintf(" %12s", exact(v))
		}
		if len(c.Inputs) == 2 && f.Speeds[0] > 0 {
			line += fmt.Sprintf(" %7.3f", f.Speeds[0])
		}
		row(w, "%s", line)
	}
}

// exact is a figure with all the digits that its program printed.
func exact(q *rank.Quantity) string {
	if q == nil {
		return "-"
	}
	return strings.TrimSuffix(strconv.FormatFloat(q.Value, 'f', digits(q.Value), 64), ".0")
}

// digits after the point: those that were printed, but never more than four.
func digits(value float64) int {
	if value >= 1e7 {
		return 0
	}
	text := strconv.FormatFloat(value, 'f', -1, 64)
	if _, fraction, ok := strings.Cut(text, "."); ok {
		return min(4, len(fraction))
	}
	return 0
}

// measurements lists a file's own measurements for Text.
func measurements(w io.Writer, all []record.Measurement) {
	if len(all) == 0 {
		return
	}
	say(w, "\nMeasurements")
	for _, m := range all {
		line := fmt.Sprintf("%-40s %14s %-8s", fit(m.Name, 40), exact(&rank.Quantity{Value: m.Value}), m.Unit)
		if m.N > 1 && m.Hi > m.Lo {
			line += fmt.Sprintf(" %s to %s in %d runs", exact(&rank.Quantity{Value: m.Lo}), exact(&rank.Quantity{Value: m.Hi}), m.N)
		}
		row(w, "%s", line)
	}
}

// Machine writes the limits of a machine for a terminal of 80 columns.
func Machine(w io.Writer, f *record.File) error {
	out := bufio.NewWriter(w)
	e := f.Environment
	say(out, "%s: %s, %d cores, %s", orUnknown(f.Campaign.Target), orUnknown(e.CPU), e.Cores, orUnknown(e.Crypto))
	limits(out, "MB/s", f.Measurements, func(m record.Measurement) (scale float64, ok bool) {
		rate, ok := m.BytesPerSecond()
		return rate / 1e6 / m.Value, ok
	})
	limits(out, "operations/s", f.Measurements, func(m record.Measurement) (scale float64, ok bool) {
		return 1, m.Unit == record.PerSecond
	})
	for _, finding := range f.Findings {
		say(out, "note: %s: %s", finding.What, finding.Why)
	}
	return out.Flush()
}

// limits is the table of those that have a scale in one unit; nothing without any.
func limits(w io.Writer, unit string, all []record.Measurement, scaleOf func(record.Measurement) (scale float64, ok bool)) {
	var lines []string
	for _, m := range all {
		if scale, ok := scaleOf(m); ok {
			lines = append(lines, limit(m, scale))
		}
	}
	if len(lines) == 0 {
		return
	}
	say(w, "")
	row(w, "%-40s %14s", "", unit)
	for _, line := range lines {
		row(w, "%s", line)
	}
}

// limit is one limit with the range of its rounds.
func limit(m record.Measurement, scale float64) string {
	line := fmt.Sprintf("%-40s %14s", fit(m.Name, 40), figure(m.Value*scale))
	if m.N > 1 {
		line += fmt.Sprintf("  %s to %s in %d rounds", figure(m.Lo*scale), figure(m.Hi*scale), m.N)
	}
	return line
}

// jsonFigure is a measurement in all files. Its unit is that of the program.
type jsonFigure struct {
	Source string          `json:"source"`
	Name   string          `json:"name"`
	Unit   record.Unit     `json:"unit"`
	Values []*jsonQuantity `json:"values"`       // lo and hi are the range of repetitions
	Speeds []float64       `json:"speed_ratios"` // of each file after the first against it; 0 unknown
}

func figuresDocument(figures []rank.Figure) []jsonFigure {
	var out []jsonFigure
	for _, f := range figures {
		j := jsonFigure{f.Source, f.Name, f.Unit, nil, f.Speeds}
		for _, v := range f.Values {
			j.Values = append(j.Values, quantity(v))
		}
		out = append(out, j)
	}
	return out
}
