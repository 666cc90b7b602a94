package output

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
)

// table writes one line for each host at the end: how it ended, how long it took, how
// many lines it sent, and the last one that is not blank, of standard error where it failed.
//
//	HOST  END      TIME  LINES  LAST
//	web1  ok      0.21s      1  up 3 days
//	web2  exit 3  0.20s      2  no such file
type table struct {
	fleet.Nothing
	w     io.Writer
	width int // of the terminal, 0 = none
	lines HostLines
	live  PerHost[tableHost]
	rows  [][]string
}

type tableHost struct {
	count int
	last  [2]string
}

var _ fleet.Sink = (*table)(nil)

// newTable writes to w; lines are cut at width, if it is not 0.
func newTable(w io.Writer, width int) *table {
	return &table{w: w, width: width, lines: HostLines{Lines: Lines{Max: maxSaid}}}
}

// Output counts lines and keeps the last one.
func (t *table) Output(e fleet.Event) error {
	h := t.live.Of(e.Index)
	t.lines.Feed(e, func(p Piece) { h.line(e.Stream, p) })
	return nil
}

func (h *tableHost) line(stream fleet.Stream, p Piece) {
	if p.Continues {
		return
	}
	h.count++
	if text := bytes.TrimSpace(p.Text); len(text) > 0 {
		h.last[stream] = string(text)
	}
}

// Done makes the row of a host.
func (t *table) Done(r fleet.Result, _ fleet.Summary) error {
	h := t.live.Take(r.Index)
	t.lines.End(r.Index, h.line)
	end, time := Brief(&r)
	last := h.last[fleet.Stdout]
	if r.Status() != fleet.OK && h.last[fleet.Stderr] != "" || last == "" {
		last = h.last[fleet.Stderr]
	}
	if r.Status() != fleet.OK && r.Err != "" && last == "" {
		last = r.Err
	}
	t.rows = append(t.rows, []string{termsafe.Line(r.Host.String()), end, time, fmt.Sprint(h.count), termsafe.Line(last)})
	return nil
}

// Brief describes the end of a host in one or two words, and how long the host took.
func Brief(r *fleet.Result) (end, time string) {
	return briefEnd(r), fmt.Sprintf("%.2fs", took(r).Seconds())
}

func briefEnd(r *fleet.Result) string {
	switch status := r.Status(); {
	case status == fleet.OK && r.Incomplete == "":
		return "ok"
	case status == fleet.OK:
		return "ok, cut off"
	case r.Class == fleet.NoFailure && r.Err != "":
		return "failed"
	case status == fleet.NotStarted || r.Class == fleet.NoFailure:
		return strings.TrimPrefix(Explain(r), "killed by ")
	}
	return strings.ReplaceAll(r.Class.String(), "_", " ")
}

// End writes the table.
func (t *table) End(fleet.Summary) error {
	table := text.Table{Columns: []text.Column{{Head: "HOST", Fit: text.Cut}, {Head: "END"}, {Head: "TIME", Right: true}, {Head: "LINES", Right: true}, {Head: "LAST", Fit: text.Cut}}, Rows: t.rows}
	_, err := io.WriteString(t.w, table.Text(max(0, t.width-1)))
	return err
}
