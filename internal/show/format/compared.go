package format

import (
	"cmp"
	"io"
	"sync"

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

// compared is the comparison of several record files that can be checked against a limit.
type compared struct {
	result
	files        []related
	lines        []compare.Line
	shows, floor float64       // the smallest slowdowns, as shares: of any line as measured, and with any amount of data
	showsCPU     float64       // the least rise of CPU time that one could show
	also         string        // another way to show more
	gate         *compare.Gate // the requested gate; nil for none
}

// Judge checks the lines against a limit, and adds the result to the report.
func (x *compared) Judge(limit compare.Limit) *compare.Gate {
	if x.gate = limit.Gate(x.lines); limit.OfCPU() {
		x.shows = x.showsCPU
	}
	return x.gate
}

// Shows returns the smallest slowdown that any line could show, as a share.
func (x *compared) Shows() float64 { return x.shows }

// More says how to measure enough to show a difference of limit, as a share.
func (x *compared) More(limit float64) string { return more(x.files, x.shows, x.floor, limit) + x.also }

// cells compares the cells of files; all is for text.
func (o *Output) cells(s store.Store, c *compare.Comparison, paths []string, all bool) *compared {
	x := &compared{lines: c.Lines(), shows: c.Shows(), floor: c.Floor()}
	for i, in := range c.Inputs {
		x.files = append(x.files, related{path: paths[i], word: s.Word(paths[i]), File: &record.File{Campaign: in.Ranking.Campaign}})
	}
	switch first, last := c.Inputs[0].Ranking.Environment, c.Inputs[len(c.Inputs)-1].Ranking.Environment; {
	case first.CPU != last.CPU && len(c.Normalized) == 0:
		x.also = "; --normalize '*' removes the common factor of all lines"
	case first.CPU == last.CPU && (first.Client != last.Client || first.ClientPath != last.ClientPath): // a slowdown of everything by a build would be removed
		x.also = "; one run takes both builds in turns and shows smaller differences: " + inTurns(last)
	}
	x.result = result{
		output:   *o,
		json:     func(w io.Writer) error { return report.CompareJSON(w, c, x.gate) },
		document: sync.OnceValue(func() *document.Document { return document.OfComparison(c, document.Options{All: all}) }),
	}
	return x
}

// inTurns returns the command that measures a build and the installed one in turns.
func inTurns(build record.Environment) string {
	line := []string{"sshpace", "programs", "--only", "openssh:openssh", "--ssh", cmp.Or(build.ClientPath, "PATH")}
	return shell.Line(append(line, "--sshd", cmp.Or(build.ServerPath, "PATH"))...)
}

// methods compares the methods of files.
func (o *Output) methods(c *compare.MethodComparison, files []related) *compared {
	x := &compared{files: files, lines: c.Lines(document.MethodLabel), shows: c.Shows(false), showsCPU: c.Shows(true), floor: c.Floor()}
	x.result = result{
		holds: methods, output: *o,
		json:     func(w io.Writer) error { return report.MethodChangesJSON(w, c, x.gate) },
		document: func() *document.Document { return document.OfMethodChanges(c) },
	}
	return x
}
