// Package report renders a ranking: as text for people, as JSON for programs,
// as the lists of the classic benchmark loop. It decides nothing.
package report

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/verdict/rank"
)

// Text writes a ranking for a terminal of 80 columns. Text from files and
// remote hosts is freed of control characters.
func Text(w io.Writer, r *rank.Ranking) error {
	out := bufio.NewWriter(w)
	heading(out, r)
	for _, d := range directions(r) {
		bulkTable(out, r, d)
	}
	if len(r.Kex) > 0 {
		kexTable(out, r)
	}
	measurements(out, r.Measurements)
	ceilings(out, r.Ceilings)
	quality(out, r)
	troubles(out, r)
	return out.Flush()
}

func heading(w io.Writer, r *rank.Ranking) {
	e := r.Environment
	if e.Client != "" || len(r.Bulk)+len(r.Kex) > 0 {
		say(w, "%s: %s to %s", orUnknown(r.Campaign.Target), orUnknown(e.Client), orUnknown(e.Server))
	} else {
		say(w, "%s: %s", orUnknown(r.Campaign.Target), orUnknown(e.Crypto))
	}
	if e.CPU != "" {
		say(w, "%s, %d cores", e.CPU, e.Cores)
	}
	if c := r.Combinations; c.Total > 0 {
		are := "are"
		if c.Total == 1 {
			are = "is"
		}
		say(w, "%s %s %d of cipher and MAC, and %s", unit.Count(c.Total, "combination"), are, c.Bulk, unit.Count(c.Kex, "key exchange"))
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// directions lists those that have cells.
func directions(r *rank.Ranking) []record.Direction {
	var out []record.Direction
	for _, c := range r.Bulk {
		if len(out) == 0 || out[len(out)-1] != c.Direction {
			out = append(out, c.Direction)
		}
	}
	return out
}

// The doubt stands beside what orders the table.
const (
	bulkLine       = "%4s %-2s %-17s %-17s %5s %-5s %6s %6s %s"
	bulkLineByCost = "%4s %-2s %-17s %-17s %5s %6s %6s %-5s %s"
)

func bulkTable(w io.Writer, r *rank.Ranking, d record.Direction) {
	say(w, "\n%s by %s", title(string(d)), r.BulkOrder())
	line := func(place, group, cipher, mac, throughput, doubt, client, server, mark string) {
		if r.By == rank.Cost {
			row(w, bulkLineByCost, place, group, cipher, mac, throughput, client, server, doubt, mark)
			return
		}
		row(w, bulkLine, place, group, cipher, mac, throughput, doubt, client, server, mark)
	}
	line("", "", "", "", "", "", "client", "server", "")
	line("rank", "", "cipher", "MAC", "MB/s", "", "ns/B", "ns/B", "")
	for _, c := range r.Bulk {
		if c.Direction == d {
			throughput := number(c.Throughput, 1e6)
			if foretold(c) {
				throughput = "~" + throughput
			}
			line(fmt.Sprint(c.Rank), c.Group, fit(Short(c.Suite.Cipher), 17), fit(Short(c.Suite.MAC), 17),
				throughput, spread(r.Deciding(c)), number(c.Client, 1), number(c.Server, 1), marks(c.Basis, c.Status))
		}
	}
	if slices.ContainsFunc(r.Bulk, func(c rank.Cell) bool {
		return c.Direction == d && c.Basis == rank.Measured && !c.Timed && c.Throughput != nil
	}) {
		say(w, "~ foretold from the costs: every connection of that cell was disturbed")
	}
}

// foretold reports that the throughput of a measured cell rests on costs alone.
func foretold(c rank.Cell) bool {
	return c.Basis == rank.Measured && throughputBasis(c) == rank.Predicted
}

const kexLine = "%4s %-2s %-36s %6s %-5s %6s %6s %s"

func kexTable(w io.Writer, r *rank.Ranking) {
	say(w, "\nKey exchange by %s", r.KexOrder())
	row(w, kexLine, "", "", "", "login", "", "client", "server", "")
	row(w, kexLine, "rank", "", "name", "ms", "", "CPU ms", "CPU ms", "")
	for _, k := range r.Kex {
		mark := marks(rank.Measured, k.Status)
		if k.PostQuantum {
			mark = strings.TrimSpace("PQ " + mark)
		}
		row(w, kexLine, fmt.Sprint(k.Rank), k.Group, fit(Short(k.Name), 36), number(k.Login, 1e6), spread(k.Login),
			number(k.Client, 1e6), number(k.Server, 1e6), mark)
		for _, alias := range k.Aliases {
			row(w, kexLine, "", "", fit("= "+alias, 36), "", "", "", "", "")
		}
	}
}

// quality says how far the numbers can be trusted, one line each.
func quality(w io.Writer, r *rank.Ranking) {
	say(w, "")
	if n := r.Noise; n.Throughput > 0 || n.Login > 0 {
		say(w, "noise floor  %s; %s", list(
			share("throughput", n.Throughput), share("cost", n.Cost), share("login", n.Login)), unit.Count(n.Controls, "A/A control"))
		say(w, "             equal things differ by less; one letter: not told apart;")
		say(w, "             ± is the 95 %% interval in this run: another may be off as a whole")
	}
	if m := r.Model; m.HoldoutCells > 0 {
		say(w, "prediction   off by %.1f %% (median), %.1f %% (95th percentile) on %d held-out cells", m.HoldoutError, m.HoldoutP95, m.HoldoutCells)
	}
	if len(r.Bulk) > 0 {
		say(w, "basis        %s", basis(r))
	}
	if h := r.Harness; h.Segments > 0 {
		say(w, "quarantine   %d of %d segments for throughput, %d for cost", h.Quarantined, h.Segments, h.QuarantinedCost)
		if h.CPUShare > 0 {
			say(w, "harness      %.1f %% of the CPU time of ssh and sshd", h.CPUShare)
		}
	}
	if text := r.FailureText(); text != "" {
		say(w, "failed       %s of %d trials", text, r.Trials)
	}
	if r.Ended != "" {
		say(w, "ended by     %s", r.Ended)
	}
}

// basis counts what was measured and what predicted.
func basis(r *rank.Ranking) string {
	measured, connections := 0, 0
	for _, c := range r.Bulk {
		if c.Basis == rank.Measured {
			measured++
		}
		n := 0
		for _, q := range []*rank.Quantity{c.Throughput, c.Client} {
			if q != nil {
				n = max(n, q.N)
			}
		}
		connections += n
	}
	text := fmt.Sprintf("%s measured in %s", unit.Count(measured, "cell"), unit.Count(connections, "connection"))
	if predicted := len(r.Bulk) - measured; predicted > 0 {
		text += fmt.Sprintf(", %d predicted", predicted)
	}
	return text
}

// troubles lists failures, warnings and findings.
func troubles(w io.Writer, r *rank.Ranking) {
	for _, f := range r.Failed {
		say(w, "failed: %s: %s", f.Suite, strings.TrimSpace(string(f.Outcome)+" "+f.Detail))
	}
	for _, warning := range r.Warnings {
		say(w, "warning: %s", warning.Text)
		if warning.Hint != "" {
			say(w, "   hint: %s", warning.Hint)
		}
	}
}

// say writes one line of text, broken at 80 columns with a hanging indent.
func say(w io.Writer, format string, args ...any) {
	if rest, ok := strings.CutPrefix(format, "\n"); ok {
		fmt.Fprintln(w)
		format = rest
	}
	text := termsafe.Line(fmt.Sprintf(format, args...))
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(strings.TrimRight(word, " ")) > 80 && strings.TrimSpace(line) != "" {
			fmt.Fprintln(w, strings.TrimRight(line, " "))
			line = "    "
		}
		line += word
	}
	fmt.Fprintln(w, strings.TrimRight(line, " "))
}

// row writes one line of a table.
func row(w io.Writer, format string, cells ...any) {
	fmt.Fprintln(w, strings.TrimRight(termsafe.Line(fmt.Sprintf(format, cells...)), " "))
}

func title(s string) string {
	if s == "" {
		return "Transfer"
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Short drops the vendor domain that most names of OpenSSH carry.
func Short(name string) string { return strings.TrimSuffix(name, "@openssh.com") }

// fit cuts a name that is too long for its column.
func fit(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	return string([]rune(name)[:width-1]) + "…"
}

// marks are the words at the end of a line: only what is not the normal case.
func marks(basis rank.Basis, status alg.Status) string {
	var words []string
	switch status {
	case alg.Weak, alg.Broken:
		words = append(words, string(status))
	case "":
		words = append(words, "unknown")
	}
	if basis == rank.Predicted {
		words = append(words, "pred.")
	}
	return strings.Join(words, " ")
}

// spread is the half width of the 95 % interval, such as "±1.9%".
func spread(q *rank.Quantity) string { return document.Spread(q) }

func number(q *rank.Quantity, scale float64) string {
	if q == nil {
		return "-"
	}
	return figure(q.Value / scale)
}

// figure prints three significant digits.
func figure(v float64) string { return document.Figure(v) }

// percent prints a percentage in at most three characters.
func percent(v float64) string { return document.Percent(v) }

// share is a named percentage, "" if it is unknown.
func share(name string, v float64) string {
	if v <= 0 {
		return ""
	}
	return fmt.Sprintf("%s %s %%", name, percent(v))
}

// list joins what is not empty.
func list(parts ...string) string {
	var kept []string
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ", ")
}
