// Package live shows how a measurement goes on.
package live

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/plan"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/sys/terminal"
)

// View shows how a run goes on: on a terminal a few lines that are redrawn
// between trials (never while something is timed), elsewhere a line for every
// cell that has its first result.
type View struct {
	screen   *terminal.Screen
	plan     Plan
	both     bool // directions
	trial    record.Trial
	trials   map[int]record.Trial // of connections in a sitting
	turns    bool                 // connections move data in turn
	seen     map[seenCell]bool
	lastDraw time.Time
}

// Plan is what is shown of a plan.
type Plan interface{ Progress() plan.Progress }

// seenCell is a cell with its direction; logins have none.
type seenCell struct {
	suite     alg.Suite
	direction record.Direction
}

// redrawEvery keeps the terminal calm when trials are short.
const redrawEvery = 200 * time.Millisecond

func New(s *terminal.Screen, p Plan, directions []record.Direction) *View {
	return &View{screen: s, plan: p, both: len(directions) > 1, trials: map[int]record.Trial{}, seen: map[seenCell]bool{}}
}

// ErrUnwatched says that what shows progress was closed, such as by `| head`.
var ErrUnwatched = fmt.Errorf("nobody watches any more: %w", syscall.EPIPE)

// Sink takes the records of the run. It is called between trials and turns.
func (v *View) Sink(r record.Record) (err error) {
	switch {
	case r.Trial != nil:
		v.trial, v.turns = *r.Trial, false
		if r.Trial.Workload == record.Sitting {
			v.trials[r.Trial.ID] = *r.Trial
		}
		err = v.refresh()
	case r.Slices != nil:
		if v.turns = true; v.screen.Width == 0 {
			err = v.moved(r.Slices.Slices)
		} else {
			err = v.refresh()
		}
	case r.Sample != nil && v.screen.Width == 0:
		err = v.line(*r.Sample)
	}
	if errors.Is(err, syscall.EPIPE) {
		return ErrUnwatched
	}
	return nil // a view that fails otherwise is no reason to stop
}

// refresh redraws a terminal, not too often.
func (v *View) refresh() error {
	if v.screen.Width == 0 || time.Since(v.lastDraw) <= redrawEvery {
		return nil
	}
	return v.redraw()
}

// moved prints one line for each cell that is among slices for the first time.
func (v *View) moved(slices []record.Slice) error {
	for _, s := range slices {
		t := v.trials[s.Trial]
		cell := seenCell{t.Want.Bulk(), t.Direction}
		if t.Workload != record.Sitting || v.seen[cell] || s.ClientCPUNS == nil || s.Bytes <= 0 {
			continue
		}
		v.seen[cell] = true
		cost := unit.Cost(float64(*s.ClientCPUNS) / float64(s.Bytes))
		if _, err := fmt.Fprintf(v.screen, "%s %s: %s client\n", t.Direction, cell.suite, cost); err != nil {
			return err
		}
	}
	return nil
}

// line prints one line for a cell's first result, and one for each failure.
func (v *View) line(s record.Sample) error {
	cell := seenCell{v.trial.Want, v.trial.Direction}
	switch v.trial.Workload {
	case record.Transfer, record.Sitting:
		cell.suite = cell.suite.Bulk()
	case record.Login:
		cell = seenCell{suite: alg.Suite{Kex: cell.suite.Kex}}
	}
	name := fmt.Sprintf("%s %s", v.trial.Workload, cell.suite)
	if (v.both || v.trial.Workload == record.Sitting) && cell.direction != "" {
		name = fmt.Sprintf("%s %s", cell.direction, cell.suite)
	}
	if s.Outcome != record.OK {
		_, err := fmt.Fprintf(v.screen, "%s: %s: %s\n", name, s.Outcome, termsafe.OneLine(s.Detail))
		return err
	}
	if v.seen[cell] || v.trial.Role == record.RoleOverhead || v.trial.Workload == record.Sitting {
		return nil
	}
	v.seen[cell] = true
	_, err := fmt.Fprintf(v.screen, "%s: %s\n", name, firstResult(s))
	return err
}

// firstResult is a sample in a few words.
func firstResult(s record.Sample) string {
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
func (v *View) redraw() error {
	p, width := v.plan.Progress(), v.screen.Width-1
	lines := append(status(p, width), terminal.Clip("now: "+v.now(), width))
	shown := map[record.Direction]int{}
	for _, leader := range p.Leaders {
		if shown[leader.Direction]++; shown[leader.Direction] <= v.places() {
			lines = append(lines, v.leader(shown[leader.Direction], leader, width))
		}
	}
	v.lastDraw = time.Now()
	return v.screen.Draw(lines...)
}

// status says how far the plan is: behind a bar, which is as long as there is
// room for it.
func status(p plan.Progress, width int) []string {
	words := []string{
		fmt.Sprintf("%d of %d cells", p.Done, p.Total), fmt.Sprintf("block %d", p.Block),
		p.Remaining.Round(time.Second).String() + " left",
	}
	if p.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", p.Failed))
	}
	room := width - len(strings.Join(words, "  ")) - len("[]  ")
	if room < shortestBar {
		return terminal.Fold(words, width)
	}
	return []string{bar(p, min(room, longestBar)) + "  " + strings.Join(words, "  ")}
}

// Lengths of the bar.
const (
	shortestBar = 4
	longestBar  = 24
)

// places is how many of the fastest cells of a direction are shown.
func (v *View) places() int {
	if v.both {
		return 3
	}
	return 5
}

// leader is a line of one of the fastest cells. Where there is little room its
// figures go first, from the last to the second, and then the end of its name.
func (v *View) leader(place int, l plan.Leader, width int) string {
	names := fmt.Sprintf("%-18s %-22s", document.Short(l.Cell.Cipher), document.Short(l.Cell.MAC))
	if width < 79 {
		names = strings.TrimSpace(document.Short(l.Cell.Cipher) + " " + document.Short(l.Cell.MAC))
	}
	if v.both {
		names = fmt.Sprintf("%-8s %s", l.Direction, names)
	}
	names = fmt.Sprintf("%3d. %s", place, names)
	figures := leaderFigures(l)
	for len(figures) > 1 && len(names)+1+len(strings.Join(figures, "  ")) > width {
		figures = figures[:len(figures)-1]
	}
	figure := strings.Join(figures, "  ")
	return terminal.Clip(names, width-1-len(figure)) + " " + figure
}

// now says what is being measured.
func (v *View) now() string {
	switch {
	case v.turns:
		return "connections in turn"
	case v.trial.Workload == record.Sitting:
		return "opening connections"
	case v.trial.Workload == record.Login:
		return fmt.Sprintf("login %s", v.trial.Want.Kex)
	}
	return fmt.Sprintf("%s %s %s", v.trial.Workload, v.trial.Direction, v.trial.Want.Bulk())
}

// leaderFigures are what is known of a cell, what matters most first.
func leaderFigures(l plan.Leader) []string {
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
	return words
}

// bar draws the share of cells that are done.
func bar(p plan.Progress, length int) string {
	full := 0
	if p.Total > 0 {
		full = length * min(p.Done+p.Failed, p.Total) / p.Total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", length-full) + "]"
}

// Close leaves a clean screen for the report.
func (v *View) Close() { _ = v.screen.Draw() }
