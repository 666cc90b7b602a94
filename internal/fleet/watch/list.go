package watch

import (
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// list is a line for each host.
func (v *view) list() source {
	return numbered{v.summary, func() int { return len(v.order) }, v.row}
}

// rank is where a host stands in the list.
type rank int

// The ranks: first what needs a look, then what goes on.
const (
	failed rank = iota
	unreachable
	running
	connecting
	waiting
	ok
	notStarted
	ranks
)

var (
	states = [ranks]string{running: "running", connecting: "connecting", waiting: "waiting"}
	colors = [ranks]string{failed: "31", unreachable: "33", connecting: "2", waiting: "2", notStarted: "2"}
	ended  = [...]rank{fleet.OK: ok, fleet.Failed: failed, fleet.Unreachable: unreachable, fleet.NotStarted: notStarted}
)

func (v *view) rank(h *hostView) rank {
	switch {
	case h.result != nil && h.result.Incomplete != "":
		return failed
	case h.result != nil:
		return ended[h.result.Status()]
	case h.since.IsZero():
		return waiting
	case v.start.Phase == nil:
		return running
	}
	switch phase := v.start.Phase(h.index); {
	case phase == fleet.PhaseQueued:
		return waiting
	case phase < fleet.PhaseExec:
		return connecting
	}
	return running
}

// arrange sorts the list. A cursor that was moved stays on its host.
func (v *view) arrange() {
	p := v.pages[0]
	on := -1
	if p.at > 0 {
		on = v.order[p.at]
	}
	var by [ranks][]int
	for i, h := range v.hosts {
		r := v.rank(h)
		by[r] = append(by[r], i)
	}
	v.order = v.order[:0]
	for _, hosts := range by {
		v.order = append(v.order, hosts...)
	}
	if on >= 0 {
		p.at = int64(slices.Index(v.order, on))
	}
}

// summary is the first line of the screen.
func (v *view) summary() string {
	elapsed := v.so.Elapsed
	if !v.over {
		elapsed = time.Since(v.start.Time)
	}
	title := output.SoFar(v.so, len(v.hosts), elapsed, false)
	if v.start.Command != "" {
		title += ": " + termsafe.OneLine(v.start.Command)
	}
	return title
}

// The widths of columns.
const (
	nameColumns, fewNames   = 24, 12
	stateColumns, fewStates = 16, 9
	timeColumns             = 7
	narrow                  = 60
)

// row is the line of a host.
func (v *view) row(i, skip, width int) (line, color string) {
	h := v.hosts[v.order[i]]
	r := v.rank(h)
	state, took := h.now(r)
	mark := " "
	if h.marked {
		mark = "*"
	}
	names, stateWidth := min(v.names, nameColumns), stateColumns
	if width > 0 && width < narrow {
		names, stateWidth = min(v.names, fewNames), fewStates
	}
	line = mark + cell(h.name, names) + " " + cell(state, stateWidth) + " " + text.PadLeft(text.Clip(took, timeColumns), timeColumns) + "  "
	return part(line+text.Rest(h.said(), skip), 0, width), colors[r]
}

func cell(s string, width int) string { return text.Pad(text.Clip(s, width), width) }

// now describes the state of a host, and its time.
func (h *hostView) now(r rank) (state, took string) {
	if h.result != nil {
		return output.Brief(h.result)
	}
	if !h.since.IsZero() {
		took = time.Since(h.since).Truncate(time.Second).String()
	}
	return states[r], took
}

// said is the last line of a host, of standard error where it failed, or why it did.
func (h *hostView) said() string {
	switch r := h.result; {
	case r != nil && (r.Err != "" || r.Class != fleet.NoFailure):
		return output.Explain(r)
	case r != nil && r.Status() != fleet.OK && h.last[fleet.Stderr] != "":
		return safe(h.last[fleet.Stderr])
	}
	return safe(h.last[h.latest])
}

// safe is a line of a host as it is shown.
func safe(line string) string {
	var b strings.Builder
	columns := 0
	for i, part := range strings.Split(termsafe.Line(line), "\t") {
		if i > 0 {
			blanks := tabStop - columns%tabStop
			b.WriteString(strings.Repeat(" ", blanks))
			columns += blanks
		}
		b.WriteString(part)
		columns += text.Width(part)
	}
	return b.String()
}

const tabStop = 8
