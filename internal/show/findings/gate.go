package findings

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/show/document"
)

// Judged is a comparison that a gate can judge.
type Judged interface {
	Judge(compare.Limit) *compare.Gate
	Shows() float64            // the least slowdown that any line could show, as a part
	More(limit float64) string // a way to make it show such a difference, as a share
}

// Asked applies a limit to a report; nil where there is no limit.
func Asked(report any, limit *compare.Limit) (Judged, *compare.Gate, error) {
	if limit == nil {
		return nil, nil, nil
	}
	judge, judges := report.(Judged)
	if !judges {
		return nil, nil, fault.Usage("compare results of sshpace bench", "--fail-on has no meaning for logins")
	}
	gate := judge.Judge(*limit)
	if len(gate.Lines) == 0 {
		hint := "use --fail-on slower:5%"
		if limit.OfCPU() {
			hint = "use --rank-by cost --fail-on transfers:5%: cpu is for results of transfer and programs"
		}
		return nil, nil, fault.Usage(hint, "the files have no %s in common", limit.Lines)
	}
	return judge, gate, nil
}

// Gate reports slower lines: an error with an exit code, or a line.
func Gate(w io.Writer, c Judged, g *compare.Gate) error {
	percent, lines := g.Limit.Percent, unit.Count(len(g.Lines), "line")
	is, be := "is slower by", "be slower by"
	if g.Limit.OfCPU() {
		is, be = "takes more CPU time by", "take more CPU time by"
	}
	switch g.Outcome() {
	case compare.Fail:
		more := ""
		if failed := len(g.Failed); failed > 1 {
			more = fmt.Sprintf(" (and %d more)", failed-1)
		}
		return &fault.Error{
			What: fmt.Sprintf("fail: %s of %g %% or more: %s%s", unit.Count(len(g.Failed), "regression"), percent, g.Failed[0], more),
			Hint: "without --fail-on, compare shows the lines with their verdicts", Code: fault.Found,
		}
	case compare.Inconclusive:
		return &fault.Error{
			What: fmt.Sprintf("inconclusive: %d of %s may %s %g %% or more, such as %s: %s", len(g.Open), lines, be, percent, g.Open[0].Title(), g.Open[0].Range()),
			Hint: moreData(c, g), Code: fault.Inconclusive,
		}
	}
	var alone []string
	for _, l := range g.Lines {
		if l.ClientAlone {
			alone = append(alone, l.Title())
		}
	}
	says := fmt.Sprintf("pass: none of %s %s %g %% or more", lines, is, percent)
	_, err := fmt.Fprintln(w, strings.Join(text.NonEmpty(says, strings.TrimSuffix(document.ClientAlone(alone, len(g.Lines)), ".")), "; "))
	return err
}

// moreData says how to make a gate conclusive.
func moreData(c Judged, g *compare.Gate) string {
	var words []string
	if shows := document.Least(c.Shows()); shows != "" {
		words = append(words, shows)
	}
	if g.Passes <= 100 { // a larger limit is none
		words = append(words, "they pass "+compare.Limit{Lines: g.Limit.Lines, Percent: math.Ceil(g.Passes + 0.5)}.String())
	}
	if g.Limit.Lines == "slower" && !slices.ContainsFunc(g.Open, func(l compare.Line) bool { return !l.Login }) {
		words = append(words, "only logins are open: --fail-on "+compare.Limit{Lines: "transfers", Percent: g.Limit.Percent}.String())
	}
	if g.CPU != nil {
		words = append(words, "there is enough data about CPU time: --fail-on "+g.CPU.String())
	}
	return strings.Join(append(words, c.More(g.Limit.Percent/100)), "; ")
}
