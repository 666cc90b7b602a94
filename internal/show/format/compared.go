package format

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

// Compared is the report of a comparison of several record files.
type Compared struct {
	result
	*compare.Comparison
	files []related
}

// compared returns the report of a comparison; all is for text.
func (o *Output) compared(c *compare.Comparison, files []related, all bool) *Compared {
	return &Compared{result{
		output:   *o,
		json:     func(w io.Writer) error { return report.CompareJSON(w, c) },
		document: func() *document.Document { return document.OfComparison(c, document.Options{All: all}) },
	}, c, files}
}

// Ranked reports whether it compares rankings.
func (x *Compared) Ranked() bool { return x.Inputs[0].Ranking != nil }

// Check judges the lines by a limit; nil is none.
func (x *Compared) Check(limit *compare.Limit) error {
	if limit == nil || len(x.Judge(*limit).Lines) > 0 {
		return nil
	}
	hint := "use --fail-on slower:5%"
	switch {
	case limit.Quantity() == compare.CPU:
		hint = "use --rank-by cost --fail-on transfers:5%: cpu is for results of login, transfer and programs"
	case len(x.In(compare.Logins)) > 0:
		hint = "use --fail-on cpu:5%"
	}
	return fault.Usage(hint, "the files have no lines for --fail-on %s in common", limit)
}

// Ruling reports the result of the gate, if there is one: an error with an exit code, or a line.
func (x *Compared) Ruling(w io.Writer) error {
	g := x.Gate
	if g == nil {
		return nil
	}
	percent, lines := g.Limit.Percent, unit.Count(len(g.Lines), "line")
	is, be := "is slower by", "be slower by"
	if g.Limit.Quantity() == compare.CPU {
		is, be = "takes more CPU time by", "take more CPU time by"
	}
	switch g.Outcome {
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
			Hint: x.moreData(), Code: fault.Inconclusive,
		}
	}
	var alone []string
	for _, l := range g.Lines {
		if l.ClientAlone && l.Quantity == compare.CPU {
			alone = append(alone, l.Title())
		}
	}
	says := fmt.Sprintf("pass: none of %s %s %g %% or more", lines, is, percent)
	_, err := fmt.Fprintln(w, strings.Join(text.NonEmpty(says, strings.TrimSuffix(document.ClientAlone(alone, len(g.Lines)), ".")), "; "))
	return err
}

// moreData says how to make the gate conclusive.
func (x *Compared) moreData() string {
	g, shows := x.Gate, x.Shows(x.Gate.Limit.Quantity())
	words := text.NonEmpty(document.Least(shows))
	if g.Passes != nil && *g.Passes <= 100 { // a larger limit is none
		words = append(words, "they pass "+compare.Limit{Lines: g.Limit.Lines, Percent: math.Ceil(*g.Passes + 0.5)}.String())
	}
	if g.Limit.Lines == "slower" && !slices.ContainsFunc(g.Open, func(l compare.Check) bool { return l.Table != compare.Kex }) {
		words = append(words, "only logins are open: --fail-on "+compare.Limit{Lines: "transfers", Percent: g.Limit.Percent}.String())
	}
	if g.CPU != nil {
		words = append(words, "there is enough data about CPU time: --fail-on "+g.CPU.String())
	}
	words = append(words, more(x.files, shows, x.Floor/100, g.Limit.Percent/100))
	if x.Ranked() {
		switch first, last := x.Inputs[0].Environment, x.Inputs[len(x.Inputs)-1].Environment; {
		case first.CPU != last.CPU && len(x.Normalized) == 0:
			words = append(words, "--normalize '*' removes the common factor of all lines")
		case first.CPU == last.CPU && (first.Client != last.Client || first.ClientPath != last.ClientPath): // a slowdown of everything by a build would be removed
			words = append(words, "one run takes both builds in turns and shows smaller differences: "+inTurns(last))
		}
	}
	return strings.Join(words, "; ")
}

// inTurns returns the command that measures a build and the installed one in turns.
func inTurns(build record.Environment) string {
	line := []string{"sshpace", "programs", "--only", "openssh:openssh", "--ssh", cmp.Or(build.ClientPath, "PATH")}
	return shell.Line(append(line, "--sshd", cmp.Or(build.ServerPath, "PATH"))...)
}
