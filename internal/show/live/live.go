// Package live shows the progress of a measurement: on a terminal a few lines that are redrawn
// between trials, elsewhere a line every ten seconds. It makes the same choice as the report at the
// end, from the data so far.
package live

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/sys/terminal"
)

// Params of a View.
type Params struct {
	Screen   *terminal.Screen
	Quiet    bool
	Progress func() plan.Progress
	Load     func() float64 // of the machine, as uptime shows it; below 0: unknown
	File     *record.File   // records so far; somebody else adds them
	Now      func() time.Time
}

// View shows a run. Its Sink is called between trials, never while one is timed.
type View struct {
	Params
	trial  record.Trial
	turns  bool // connections move data in turn
	drawn  time.Time
	ranked time.Time     // when the ranking below was made
	pause  time.Duration // until the next one
	answer string
	told   map[string]bool // failures
}

// How often a view changes. A ranking may take one part in restShare of the time.
const (
	drawEvery = 200 * time.Millisecond
	lineEvery = 10 * time.Second
	rankEvery = 2 * time.Second
	restShare = 50
)

// New makes the view of a run that is about to start.
func New(p Params) *View {
	return &View{Params: p, drawn: p.Now(), told: map[string]bool{}}
}

// ErrUnwatched says that the reader of the progress is gone, such as by `| head`.
var ErrUnwatched = fmt.Errorf("nobody watches any more: %w", syscall.EPIPE)

// Sink takes the records of the run as they happen.
func (v *View) Sink(r record.Record) error {
	var sample *record.Sample
	switch r := r.(type) {
	case *record.Trial:
		v.trial, v.turns = *r, false
	case *record.Slices:
		v.turns = true
	case *record.Sample:
		sample = r
	}
	if v.Quiet {
		return nil
	}
	err := v.show(sample)
	if errors.Is(err, syscall.EPIPE) {
		return ErrUnwatched
	}
	return nil // other failures of a view do not stop the run
}

// show draws or prints if it is time.
func (v *View) show(sample *record.Sample) error {
	if v.Screen.Width == 0 {
		if err := v.failure(sample); err != nil {
			return err
		}
	}
	every := drawEvery
	if v.Screen.Width == 0 {
		every = lineEvery
	}
	if v.Now().Sub(v.drawn) < every {
		return nil
	}
	v.drawn = v.Now()
	v.rank()
	if v.Screen.Width == 0 {
		_, err := fmt.Fprintln(v.Screen, v.line())
		return err
	}
	return v.Screen.Draw(v.lines()...)
}

// failure reports once why trials fail.
func (v *View) failure(s *record.Sample) error {
	if s == nil || s.Outcome == record.OK {
		return nil
	}
	what := fmt.Sprintf("%s: %s: %s", step(v.trial), s.Outcome, termsafe.Line(s.Detail))
	if v.told[what] {
		return nil
	}
	v.told[what] = true
	_, err := fmt.Fprintln(v.Screen, what)
	return err
}

// rank makes the choice from the data so far, now and then: more data take longer.
func (v *View) rank() {
	start := v.Now()
	if start.Sub(v.ranked) < max(rankEvery, v.pause) || !v.Progress().Ranked {
		return
	}
	v.ranked = start
	r, err := rank.Of(v.File, rank.Auto)
	if err != nil || len(r.Bulk) == 0 {
		return
	}
	v.answer = strings.Join(document.AnswerOf(r, advise.Of(r, advise.Options{}), document.Standard).Says, " ")
	v.pause = restShare * v.Now().Sub(start)
}

// lines returns the lines for a terminal: how far the run is, disturbances, the best option so far,
// the present step, and the effect of Ctrl-C.
func (v *View) lines() []string {
	p, width := v.Progress(), v.Screen.Width-1
	out, answer := status(p, width), "no answer yet"
	if v.answer != "" {
		answer = "so far: " + v.answer
	}
	out = append(out, text.Wrap("", strings.Join(text.NonEmpty(v.load(), answer), "; "), width)...)
	return append(out, "now: "+v.step(), "Ctrl-C: report the results so far; twice: stop at once")
}

// line returns the state of the run as one line, for a file or a pipe.
func (v *View) line() string {
	words := append(progress(v.Progress()), text.NonEmpty(v.load())...)
	return strings.Join(text.NonEmpty(strings.Join(words, ", "), v.answer), "; ")
}

func (v *View) load() string {
	if load := v.Load(); load >= 0 {
		return fmt.Sprintf("load %.1f", load)
	}
	return ""
}

// step describes the present step of the measurement.
func (v *View) step() string {
	switch {
	case v.turns:
		return "connections in turn"
	case v.trial.Workload == record.Sitting:
		return "opening connections"
	}
	return step(v.trial)
}

// step names a trial.
func step(t record.Trial) string {
	if t.Workload == record.Login {
		return termsafe.Line("login " + t.Want.Kex)
	}
	return termsafe.Line(strings.Join(text.NonEmpty(string(t.Workload), string(t.Direction), t.Want.Bulk().String()), " "))
}

// progress describes the progress of a plan.
func progress(p plan.Progress) []string {
	words := []string{p.Remaining.Round(time.Second).String() + " left", fmt.Sprintf("%d of %d measured", p.Done, p.Total)}
	if p.Failed > 0 {
		words = append(words, fmt.Sprintf("%d failed", p.Failed))
	}
	return words
}

// Lengths of the bar.
const (
	shortestBar = 4
	longestBar  = 30
)

// status returns the progress after a bar, which is as long as there is room for it.
func status(p plan.Progress, width int) []string {
	words := strings.Join(progress(p), "  ")
	room := width - len(words) - len("[]  ")
	if room < shortestBar {
		return text.Wrap("", words, width)
	}
	return []string{bar(p, min(room, longestBar)) + "  " + words}
}

// bar draws the share of cells that are done.
func bar(p plan.Progress, length int) string {
	full := 0
	if p.Total > 0 {
		full = length * min(p.Done+p.Failed, p.Total) / p.Total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", length-full) + "]"
}
