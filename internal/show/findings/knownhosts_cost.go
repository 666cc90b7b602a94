package findings

import (
	"fmt"
	"io"
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	measured "sshpace/internal/bench/hostkeys"
)

// Cost prints the table for people. Times are milliseconds of processor time, medians with 95 %
// intervals where there are enough rounds.
func Cost(w io.Writer, c measured.Cost, version string) error {
	fmt.Fprintf(w, "%s\n\n%s: %s, %d of them hashed, %s\n", costAdvice(c), c.File, unit.Count(c.Lines, "line"), c.HashedLines, unit.Bytes(c.Bytes))
	how := fmt.Sprintf("medians of %d with 95 %% intervals", c.Rounds)
	if c.Rounds < stats.MinExact {
		how = fmt.Sprintf("medians of %s (%d or more give 95 %% intervals)", unit.Count(c.Rounds, "round"), stats.MinExact)
	}
	fmt.Fprintf(w, "CPU time of a login, %s, %s:\n\n", how, termsafe.OneLine(version))
	table := text.Table{Columns: []text.Column{{Head: "layout"}, {Head: "UpdateHostKeys"}, {Head: "ssh, ms"}, {Head: "due to the file, ms"}}}
	for _, row := range c.OpenSSH {
		name, update := row.Layout, "no"
		if row.AsItIs {
			name += " (as it is)"
		}
		if row.UpdateHostKeys {
			update = "yes"
		}
		extra := "-"
		switch {
		case row.Layout == "split":
		case row.Extra.Value <= 0: // lines cost no less than none: it is noise
			extra = "none"
		default:
			extra = milliseconds(row.Extra)
		}
		table.Rows = append(table.Rows, []string{name, update, milliseconds(row.CPU), extra})
	}
	micro := func(ns float64) string { return unit.Digits(ns / 1e3) }
	_, err := fmt.Fprintf(w, "%s\nsshpace run: %s ms once, then %s per host\n", table.Text(0), milliseconds(c.Load), c.Lookup.Bounded().Shown(micro, " us"))
	return err
}

// costAdvice explains the numbers for the file's present layout.
func costAdvice(c measured.Cost) string {
	var update, plain stats.Interval
	for _, row := range c.OpenSSH {
		switch {
		case row.AsItIs && row.UpdateHostKeys:
			update = row.Extra
		case row.AsItIs:
			plain = row.Extra
		}
	}
	if few := update.N < stats.MinExact; few && update.Value >= minGain {
		return fmt.Sprintf("Not enough data for the gain of splitting this file: use --rounds %d or more.", stats.MinExact)
	} else if few || update.Lo < minGain {
		return "There is nothing to gain by splitting this file."
	}
	text := fmt.Sprintf("Splitting this file saves %s of CPU time per login: sshpace known-hosts split", unit.Milliseconds(update.Value))
	if gain := update.Lo - plain.Hi; gain > minGain {
		text += fmt.Sprintf("\nUpdateHostKeys no saves %s of them, but ssh then learns no new host keys.", unit.Milliseconds(gain))
	}
	return text
}

// minGain is the saving per login, in nanoseconds, from which a change is worth the trouble.
const minGain = 1e6

func milliseconds(i stats.Interval) string {
	return i.Bounded().Shown(unit.InMilliseconds, "")
}

// CostJSON prints the measurement as JSON.
func CostJSON(w io.Writer, c measured.Cost, version string) error {
	c.OpenSSH = slices.Clone(c.OpenSSH)
	for i := range c.OpenSSH {
		row := &c.OpenSSH[i]
		row.CPU, row.Extra = row.CPU.Bounded(), row.Extra.Bounded()
	}
	c.Load, c.Lookup = c.Load.Bounded(), c.Lookup.Bounded()
	return termsafe.WriteJSON(w, struct {
		Schema string `json:"schema"`
		SSH    string `json:"ssh"`
		measured.Cost
	}{"sshpace.known-hosts.bench/1", version, c}, "  ")
}
