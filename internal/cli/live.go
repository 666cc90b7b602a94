package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/plan"
	"sshpace/internal/report"
	"sshpace/internal/unit"
)

// liveView shows how a run goes on: on a terminal a few lines that are redrawn
// between trials (never while something is timed), elsewhere a line for every
// cell that has its first result.
type liveView struct {
	w        io.Writer
	plan     *plan.Plan
	width    int // of the terminal; 0 if there is none
	drawn    int // lines on the screen
	trial    bench.Trial
	seen     map[alg.Suite]bool
	lastDraw time.Time
}

// redrawEvery keeps the terminal calm when trials are short.
const redrawEvery = 200 * time.Millisecond

func newLiveView(sys System, p *plan.Plan) *liveView {
	return &liveView{w: sys.Stderr, plan: p, width: terminalWidth(sys.Stderr, sys.Getenv), seen: map[alg.Suite]bool{}}
}

// terminalWidth is 0 where w is no terminal that can be redrawn.
func terminalWidth(w io.Writer, getenv func(string) string) int {
	if !isTerminal(w) || getenv("TERM") == "dumb" {
		return 0
	}
	width, _, err := term.GetSize(int(w.(*os.File).Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}

// sink takes the records of the run. It is called between trials.
func (v *liveView) sink(r bench.Record) error {
	switch {
	case r.Trial != nil:
		v.trial = *r.Trial
		if v.width > 0 && time.Since(v.lastDraw) > redrawEvery {
			v.redraw()
		}
	case r.Sample != nil && v.width == 0:
		v.line(*r.Sample)
	}
	return nil
}

// line prints one line for a cell's first result, and one for each failure.
func (v *liveView) line(s bench.Sample) {
	cell := v.trial.Want
	switch v.trial.Workload {
	case bench.Transfer:
		cell = cell.Bulk()
	case bench.Login:
		cell = alg.Suite{Kex: cell.Kex}
	}
	if s.Outcome != bench.OK {
		fmt.Fprintf(v.w, "%s %s: %s: %s\n", v.trial.Workload, cell, s.Outcome, oneLine(s.Detail))
		return
	}
	if v.seen[cell] || v.trial.Role == bench.RoleOverhead {
		return
	}
	v.seen[cell] = true
	fmt.Fprintf(v.w, "%s %s: %s\n", v.trial.Workload, cell, firstResult(s))
}

// firstResult is a sample in a few words.
func firstResult(s bench.Sample) string {
	if s.Phases != nil {
		return s.Phases.LoginNS.Round(100 * time.Microsecond).String()
	}
	var bytes unit.Bytes
	var wall time.Duration
	for _, segment := range s.Segments {
		bytes, wall = bytes+segment.Bytes, wall+segment.WallNS
	}
	if wall <= 0 {
		return "no data"
	}
	return unit.Throughput(float64(bytes) / wall.Seconds()).String()
}

// redraw replaces what stands on the screen.
func (v *liveView) redraw() {
	p := v.plan.Progress()
	lines := []string{fmt.Sprintf("%s  %d of %d cells  block %d  %s left", bar(p), p.Done, p.Total, p.Block, p.Remaining.Round(time.Second))}
	if p.Failed > 0 {
		lines[0] += fmt.Sprintf("  %d failed", p.Failed)
	}
	lines = append(lines, "now: "+v.now())
	for i, leader := range p.Leaders[:min(5, len(p.Leaders))] {
		lines = append(lines, fmt.Sprintf("%3d. %-18s %-22s %s", i+1, report.Short(leader.Cell.Cipher), report.Short(leader.Cell.MAC), leaderFigure(leader)))
	}
	v.erase()
	for _, line := range lines {
		fmt.Fprintln(v.w, line[:min(len(line), v.width-1)])
	}
	v.drawn, v.lastDraw = len(lines), time.Now()
}

// now says what is being measured.
func (v *liveView) now() string {
	if v.trial.Workload == bench.Login {
		return fmt.Sprintf("login %s", v.trial.Want.Kex)
	}
	return fmt.Sprintf("%s %s %s", v.trial.Workload, v.trial.Direction, v.trial.Want.Bulk())
}

func leaderFigure(l plan.Leader) string {
	var words []string
	if l.Throughput > 0 {
		words = append(words, unit.Throughput(l.Throughput).String())
	}
	if l.CostNS > 0 {
		words = append(words, unit.Cost(l.CostNS).String()+" client")
	}
	if l.Predicted {
		words = append(words, "predicted")
	}
	return strings.Join(words, "  ")
}

// bar draws the share of cells that are done.
func bar(p plan.Progress) string {
	const width = 24
	full := 0
	if p.Total > 0 {
		full = width * min(p.Done+p.Failed, p.Total) / p.Total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

// erase takes the last drawing off the screen.
func (v *liveView) erase() {
	if v.drawn > 0 {
		fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.drawn)
		v.drawn = 0
	}
}

// close leaves a clean screen for the report.
func (v *liveView) close() { v.erase() }
