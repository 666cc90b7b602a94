// Package report renders a ranking: as text for people, as JSON for programs.
// It decides nothing, and it prints nothing by itself.
package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/rank"
)

// Text writes a ranking for a terminal of 80 columns.
func Text(w io.Writer, r *rank.Ranking) error {
	out := bufio.NewWriter(w)
	heading(out, r)
	for _, d := range directions(r) {
		bulkTable(out, r, d)
	}
	if len(r.Kex) > 0 {
		kexTable(out, r)
	}
	footer(out, r)
	return out.Flush()
}

func heading(w io.Writer, r *rank.Ranking) {
	e := r.Environment
	fmt.Fprintf(w, "%s: %s to %s\n", r.Campaign.Target, orUnknown(e.Client), orUnknown(e.Server))
	if e.CPU != "" {
		fmt.Fprintf(w, "%s, %d cores\n", e.CPU, e.Cores)
	}
	c := r.Combinations
	fmt.Fprintf(w, "%d combinations = %d ciphers with MAC, %d key exchanges\n", c.Total, c.Bulk, c.Kex)
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// directions lists those that have cells, in the campaign's order.
func directions(r *rank.Ranking) []bench.Direction {
	var out []bench.Direction
	for _, d := range []bench.Direction{bench.Upload, bench.Download} {
		for _, c := range r.Bulk {
			if c.Direction == d {
				out = append(out, d)
				break
			}
		}
	}
	return out
}

func bulkTable(w io.Writer, r *rank.Ranking, d bench.Direction) {
	fmt.Fprintf(w, "\n%s, ranked by %s\n", title(string(d)), r.By)
	fmt.Fprintf(w, "%4s %-2s %-17s %-17s %13s %6s %6s\n", "", "", "cipher", "MAC", "MB/s", "client", "server")
	for _, c := range r.Bulk {
		if c.Direction != d {
			continue
		}
		line := fmt.Sprintf("%4d %-2s %-17s %-17s %13s %6s %6s %s", c.Rank, c.Group, Short(c.Suite.Cipher), Short(c.Suite.MAC),
			plusMinus(c.Throughput, 1e6), number(c.Client, 1), number(c.Server, 1), marks(c.Basis, c.Status))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func title(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Short drops the vendor domain that most names of OpenSSH carry.
func Short(name string) string { return strings.TrimSuffix(name, "@openssh.com") }

// marks are the words at the end of a line: only what is not the normal case.
func marks(basis rank.Basis, status alg.Status) string {
	var words []string
	if basis == rank.Predicted {
		words = append(words, "pred")
	}
	switch status {
	case alg.Weak, alg.Broken:
		words = append(words, string(status))
	case "":
		words = append(words, "unknown")
	}
	return strings.Join(words, " ")
}

func plusMinus(q *rank.Quantity, scale float64) string {
	if q == nil {
		return "-"
	}
	if q.Lo == q.Hi {
		return figure(q.Value/scale) + "     "
	}
	return fmt.Sprintf("%s ±%s%%", figure(q.Value/scale), percent(100*q.HalfWidth()))
}

func number(q *rank.Quantity, scale float64) string {
	if q == nil {
		return "-"
	}
	return figure(q.Value / scale)
}

// figure prints three significant digits.
func figure(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	case v >= 1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// percent prints a percentage in at most three characters.
func percent(v float64) string {
	switch {
	case v >= 999:
		return "999"
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

func kexTable(w io.Writer, r *rank.Ranking) {
	fmt.Fprintf(w, "\nKey exchange, ranked by login time\n")
	fmt.Fprintf(w, "%4s %-2s %-36s %13s %6s %6s\n", "", "", "name", "login ms", "client", "server")
	for _, k := range r.Kex {
		mark := marks(rank.Measured, k.Status)
		if k.PostQuantum {
			mark = strings.TrimSpace("PQ " + mark)
		}
		line := fmt.Sprintf("%4d %-2s %-36s %13s %6s %6s %s", k.Rank, k.Group, Short(k.Name),
			plusMinus(k.Login, 1e6), number(k.Client, 1e6), number(k.Server, 1e6), mark)
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func footer(w io.Writer, r *rank.Ranking) {
	h := r.Harness
	fmt.Fprintf(w, "\nharness: %.1f %% of the CPU time of ssh and sshd; %d of %d segments quarantined\n", h.CPUShare, h.Quarantined, h.Segments)
	for _, f := range r.Failed {
		fmt.Fprintf(w, "failed: %s: %s %s\n", f.Suite, f.Outcome, f.Detail)
	}
	if r.Ended != "" {
		fmt.Fprintf(w, "ended: %s\n", r.Ended)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintf(w, "warning: %s\n", warning.Text)
	}
}
