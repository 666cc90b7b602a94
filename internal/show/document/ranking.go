package document

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// OfRanking builds the report of one record file.
func OfRanking(r *rank.Ranking, f *record.File) *Document {
	d := &Document{
		Title: text(fmt.Sprintf("SSH speed: %s", orUnknown(r.Campaign.Target))),
		Lead:  lead(r), Environment: environment(r), Quality: quality(r), Method: method(r),
		Doubts: doubts(r.Warnings, r.Findings),
	}
	d.Tables = rankingTables(r)
	d.Charts = rankingCharts(r)
	d.Brief = briefRanking(r)
	if trace, ok := steadiness(r, f); ok {
		d.Charts = append(d.Charts, trace)
	}
	d.Algorithms = algorithms(rankingSuites(r))
	return d
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

// Directions lists those that have cells, in the order of the ranking.
func Directions(r *rank.Ranking) []record.Direction {
	var out []record.Direction
	for _, c := range r.Bulk {
		if !slices.Contains(out, c.Direction) {
			out = append(out, c.Direction)
		}
	}
	return out
}

// lead says the outcome in sentences.
func lead(r *rank.Ranking) []string {
	e := r.Environment
	out := []string{fmt.Sprintf("%s to %s.", orUnknown(e.Client), orUnknown(e.Server))}
	for _, d := range Directions(r) {
		out = append(out, first(r, d)...)
	}
	out = append(out, leadKex(r)...)
	for i := range out {
		out[i] = text(out[i])
	}
	return out
}

// leadKex names the cheapest key exchange, with its standing where that is not
// strong, the cheapest strong one, and the cheapest post-quantum one.
func leadKex(r *rank.Ranking) []string {
	var out []string
	named := map[string]bool{}
	for _, want := range []struct {
		what string
		ok   func(k rank.Exchange) bool
	}{
		{"key exchange", func(rank.Exchange) bool { return true }},
		{"strong one", func(k rank.Exchange) bool { return k.Status == alg.Strong }},
		{"post-quantum one", func(k rank.Exchange) bool { return k.PostQuantum }},
	} {
		i := slices.IndexFunc(r.Kex, func(k rank.Exchange) bool { return k.Login != nil && want.ok(k) })
		if i < 0 || named[r.Kex[i].Name] {
			continue
		}
		k := r.Kex[i]
		named[k.Name] = true
		standing := ""
		if k.Status != alg.Strong {
			standing = fmt.Sprintf(" (%s)", cmp.Or(string(k.Status), "unknown"))
		}
		out = append(out, fmt.Sprintf("Cheapest %s: %s%s, a login in %s ms.", want.what, k.Name, standing, Figure(k.Login.Value/1e6)))
	}
	return out
}

// first names the first cell of a direction, and the first strong one where that
// is another.
func first(r *rank.Ranking, d record.Direction) []string {
	word := "Fastest"
	if r.By == rank.Cost {
		word = "Cheapest"
	}
	var out []string
	for _, c := range r.Bulk {
		if c.Direction != d {
			continue
		}
		strong := c.Status == alg.Strong
		switch {
		case len(out) == 0:
			out = append(out, fmt.Sprintf("%s %s: %s (%s).", word, orTransfer(d), c.Suite, speed(r, c)))
		case strong:
			out = append(out, fmt.Sprintf("%s strong one: %s (%s).", word, c.Suite, speed(r, c)))
		}
		if strong {
			break
		}
	}
	return out
}

func orTransfer(d record.Direction) string {
	if d == "" {
		return "transfer"
	}
	return string(d)
}

// speed is a cell in what orders the ranking, and in throughput.
func speed(r *rank.Ranking, c rank.Cell) string {
	var parts []string
	if cost := r.Deciding(c); r.By == rank.Cost && cost != nil {
		parts = append(parts, Figure(cost.Value)+" ns of CPU per byte on "+r.CostSide())
	}
	if c.Throughput != nil {
		parts = append(parts, Figure(c.Throughput.Value/1e6)+" MB/s")
	}
	return strings.Join(parts, ", ")
}

// rankingSuites lists every name that the report shows.
func rankingSuites(r *rank.Ranking) []alg.Suite {
	var out []alg.Suite
	for _, c := range r.Bulk {
		out = append(out, c.Suite)
	}
	for _, k := range r.Kex {
		for _, name := range append([]string{k.Name}, k.Aliases...) {
			out = append(out, alg.Suite{Kex: name})
		}
	}
	return out
}

// algorithms looks up all names, each once: ciphers, MACs, key exchanges.
func algorithms(suites []alg.Suite) []Algorithm {
	var out []Algorithm
	for _, axis := range []struct {
		kind alg.Kind
		of   func(alg.Suite) string
	}{
		{alg.Cipher, func(s alg.Suite) string { return s.Cipher }},
		{alg.MAC, func(s alg.Suite) string { return s.MAC }},
		{alg.Kex, func(s alg.Suite) string { return s.Kex }},
	} {
		seen := map[string]bool{"": true}
		for _, s := range suites {
			if name := axis.of(s); !seen[name] {
				seen[name] = true
				out = append(out, algorithm(axis.kind, name))
			}
		}
	}
	return out
}

func algorithm(kind alg.Kind, name string) Algorithm {
	a, known := alg.Lookup(kind, name)
	reason := a.Reason
	if !known {
		reason = "This name is not in the table of algorithms: treat it as unsafe until you know better."
	}
	return Algorithm{kind, text(name), a.Status, text(reason), a.PostQuantum}
}

// Standing is a status in a word: an unknown name is said to be one.
func Standing(s alg.Status) string {
	if s == "" {
		return "unknown"
	}
	return string(s)
}

// doubts gathers warnings and findings.
func doubts(warnings []rank.Warning, findings []record.Finding) []Doubt {
	var out []Doubt
	for _, w := range warnings {
		out = append(out, Doubt{text(w.Text), text(w.Hint)})
	}
	for _, f := range findings {
		what := strings.Join(nonEmpty(f.What, f.Why, f.Evidence), ": ")
		out = append(out, Doubt{text(what), text(f.Fix)})
	}
	return out
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
