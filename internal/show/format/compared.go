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

// compared is the comparison of several record files that can be held against a limit.
type compared struct {
	result
	files        []related
	lines        []compare.Line
	shows, floor float64       // the least slowdowns, as parts: that a line could show, and with any amount of data
	showsCPU     float64       // the least rise of CPU time that one could show
	also         string        // what else would make it show more
	gate         *compare.Gate // that was asked for; nil for none
}

// Judge holds the lines against a limit, and makes that a part of the report.
func (x *compared) Judge(limit compare.Limit) *compare.Gate {
	if x.gate = limit.Gate(x.lines); limit.OfCPU() {
		x.shows = x.showsCPU
	}
	return x.gate
}

// Shows is the least slowdown that any line could show, as a part.
func (x *compared) Shows() float64 { return x.shows }

// More is what makes the comparison show a difference of so much, as a part.
func (x *compared) More(limit float64) string { return more(x.files, x.shows, x.floor, limit) + x.also }

// cells relates the cells of files; all is for text.
func (o *Output) cells(s store.Store, c *compare.Comparison, paths []string, all bool) *compared {
	x := &compared{lines: c.Lines(), shows: c.Shows(), floor: c.Floor()}
	for i, in := range c.Inputs {
		x.files = append(x.files, related{path: paths[i], word: s.Word(paths[i]), File: &record.File{Campaign: in.Ranking.Campaign}})
	}
	switch first, last := c.Inputs[0].Ranking.Environment, c.Inputs[len(c.Inputs)-1].Ranking.Environment; {
	case first.CPU != last.CPU && len(c.Normalized) == 0:
		x.also = "; --normalize '*' leaves out what all lines have in common"
	case first.CPU == last.CPU && (first.Client != last.Client || first.ClientPath != last.ClientPath): // what a build makes slower throughout would be left out
		x.also = "; one run takes both builds in turns and shows smaller differences: " + inTurns(last)
	}
	x.result = result{
		output:   *o,
		json:     func(w io.Writer) error { return report.CompareJSON(w, c, x.gate) },
		document: sync.OnceValue(func() *document.Document { return document.OfComparison(c, document.Options{All: all}) }),
	}
	return x
}

// inTurns is the command that measures a build beside the installed one.
func inTurns(build record.Environment) string {
	line := []string{"sshpace", "programs", "--only", "openssh:openssh", "--ssh", cmp.Or(build.ClientPath, "PATH")}
	return shell.Line(append(line, "--sshd", cmp.Or(build.ServerPath, "PATH"))...)
}

// methods relates the methods of files.
func (o *Output) methods(c *compare.MethodComparison, files []related) *compared {
	x := &compared{files: files, lines: c.Lines(document.MethodLabel), shows: c.Shows(false), showsCPU: c.Shows(true), floor: c.Floor()}
	x.result = result{
		holds: methods, output: *o,
		json:     func(w io.Writer) error { return report.MethodChangesJSON(w, c, x.gate) },
		document: func() *document.Document { return document.OfMethodChanges(c) },
	}
	return x
}
