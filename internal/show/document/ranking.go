package document

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Options of a report. The zero value is the default.
type Options struct {
	Choice   *advise.Choice    // the advice of the reports; default: by the policy modern
	Ceilings *compare.Ceilings // limits of the fastest cell; nil where the machine was not measured
	All      bool              // text: every row, including those that the policy forbids
	Method   bool              // text: how the figures came about, and how far to trust them
	Limit    int               // text: rows of a table; 0: as many as fit the screen, below 0: all
	Columns  int               // text: of the terminal; 0: any width
	File     string            // text: name of the result; "" for none
	Shown    string            // text: that name as a user types it; default: File
	Commands Commands          // that lead on from this result; default: Standard
	Only     bool              // tables and charts show only allowed algorithms
	Measured time.Duration     // how long the run took; 0: as planned
}

// OfRanking builds the report of one record file.
func OfRanking(r *rank.Ranking, f *record.File, o Options) *Document {
	if o.Choice == nil {
		o.Choice = advise.Of(r, advise.Options{})
	}
	o.Commands = cmp.Or(o.Commands, Standard)
	if f != nil && o.Measured == 0 {
		o.Measured = f.Measured()
	}
	o.Commands.measured = o.Measured
	d := &Document{
		Title:  clean(fmt.Sprintf("SSH speed: %s", cmp.Or(r.Campaign.Target, unknownWord))),
		Answer: AnswerOf(r, o.Choice, o.Commands), Environment: environment(r.Environment, r.Campaign, r.Heat), Quality: quality(screen{r: r, c: o.Choice, o: o}), Method: method(r),
		Doubts: doubts(r.Warnings, r.Findings),
	}
	if !o.All {
		d.PolicyName = o.Choice.Policy.Name
	}
	d.Footnote = "Measured " + (screen{r: r, c: o.Choice, o: o}).measured().Value
	allowed := r
	if o.Only {
		allowed = o.Choice.Policy.Only(r)
	}
	d.Tables = rankingTables(allowed, o.Ceilings)
	d.Charts = rankingCharts(allowed, o.Choice)
	if o.Only {
		for i := range d.Charts {
			if d.Charts[i].Name != AnswerChart { // whose title says so
				d.Charts[i].Note += " Policy " + clean(o.Choice.Policy.Name) + "."
			}
		}
	}
	d.Brief = brief(r, d, o)
	d.Algorithms = Algorithms(rankingSuites(r))
	return d
}

// brief returns the report for a terminal.
func brief(r *rank.Ranking, d *Document, o Options) []Table {
	switch s := (screen{r: r, c: o.Choice, answer: d.Answer, o: o}); {
	case o.Method:
		return Clean(howMeasured(r, d))
	case o.All:
		return Clean(append(s.opening(), everything(r, d)...))
	case len(r.Bulk) == 0:
		return Clean(s.besides(d.Tables))
	default:
		return Clean(s.tables())
	}
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

// Algorithms looks up all names, each once: ciphers, MACs, key exchanges, host keys.
func Algorithms(suites []alg.Suite) []Algorithm {
	var out []Algorithm
	for _, kind := range alg.Kinds {
		seen := map[string]bool{"": true}
		for _, s := range suites {
			if name := s.Name(kind); !seen[name] {
				seen[name] = true
				out = append(out, algorithm(kind, name))
			}
		}
	}
	return out
}

func algorithm(kind alg.Kind, name string) Algorithm {
	a, known := alg.Lookup(kind, name)
	reason := a.Reason
	if !known {
		reason = "This name is not in the table of algorithms: treat it as unsafe."
	}
	return Algorithm{kind, clean(name), a.Status, clean(reason), a.PostQuantum}
}

// Standing returns a status as a word; an unknown name is called unknown.
func Standing(s alg.Status) string { return cmp.Or(string(s), unknownWord) }

func doubtOf(w rank.Warning) Doubt { return Doubt{clean(w.Text), clean(w.Hint)} }

// doubts gathers warnings and findings.
func doubts(warnings []rank.Warning, findings []record.Finding) []Doubt {
	var out []Doubt
	for _, w := range warnings {
		out = append(out, doubtOf(w))
	}
	lacking := map[string][]string{} // unmeasured things, by the reason
	for _, f := range findings {
		if name, ok := strings.CutSuffix(f.What, notMeasured); ok {
			lacking[f.Why] = append(lacking[f.Why], name)
		}
	}
	for _, f := range findings {
		names := lacking[f.Why]
		if name, ok := strings.CutSuffix(f.What, notMeasured); ok && len(names) > 1 {
			if name != names[0] {
				continue
			}
			f.What = "not measured: " + strings.Join(names, ", ")
		}
		what := strings.Join(text.NonEmpty(f.What, f.Why, f.Evidence), ": ")
		out = append(out, Doubt{clean(what), clean(f.Fix)})
	}
	return out
}

// notMeasured ends the findings about unmeasured things.
const notMeasured = " is not measured"
