package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

// quantity is one of the things that are compared.
type quantity struct {
	name  string
	loop  func(transfer) float64
	ours  func(row) float64
	noise func(*report) float64 // percent
}

var quantities = []quantity{
	{
		"client CPU, ns/byte",
		func(t transfer) float64 { return t.ClientCPU / t.ClientBytes },
		func(r row) float64 { return r.Client.Value }, func(r *report) float64 { return r.Noise.Cost },
	},
	{
		"throughput, MB/s",
		func(t transfer) float64 { return t.SinkBytes / 1e6 / t.Wall.Seconds() },
		func(r row) float64 { return r.Throughput.Value / 1e6 }, func(r *report) float64 { return r.Noise.Throughput },
	},
	{
		"server CPU, ns/byte",
		func(t transfer) float64 { return t.ServerCPU / t.ServerBytes },
		func(r row) float64 { return r.Server.Value }, func(r *report) float64 { return r.Noise.Cost },
	},
}

// line holds what both programs say about a cell.
type line struct {
	cell
	loop, ours           estimate
	loopRatio, oursRatio estimate // to the reference
}

// off and ratioOff are logarithms.
func (l line) off() float64      { return l.ours.log - l.loop.log }
func (l line) ratioOff() float64 { return l.oursRatio.log - l.loopRatio.log }

// inside says whether both intervals explain the difference of the ratios.
func (l line) inside() bool {
	return math.Abs(l.ratioOff()) <= math.Hypot(l.oursRatio.arm, l.loopRatio.arm)
}

// compare prints a table for every quantity, without a report of the loops alone.
func compare(w io.Writer, r *result) {
	if missing := r.missing(); len(missing) > 0 {
		fmt.Fprintf(w, "not reported by sshpace: %v\n\n", missing)
	}
	for _, q := range quantities {
		allowed, others := q.lines(r, r.Allowed), q.lines(r, r.Others)
		all := slices.Concat(allowed, others)
		if len(all) == 0 {
			continue
		}
		q.table(w, r, all)
		if r.Report != nil {
			sum(w, "allowed", allowed)
			sum(w, "others", others)
			common(w, all)
		}
		floor(w, all)
		q.level(w, r)
		fmt.Fprintln(w)
	}
	machine(w, r)
}

// missing are cells that sshpace was to report.
func (r *result) missing() []cell {
	return slices.DeleteFunc(slices.Concat(r.Allowed, r.Others), func(c cell) bool {
		return r.Report == nil || slices.ContainsFunc(r.Report.Bulk, func(x row) bool { return x.cell == c })
	})
}

// lines are in order of the loops' figures, without cells that sshpace was to report and did not.
func (q quantity) lines(r *result, cells []cell) []line {
	var out []line
	for _, c := range cells {
		l := line{cell: c, loop: estimateOf(q.logs(r, c)), loopRatio: estimateOf(q.ratios(r, c))}
		if r.Report != nil {
			if q.ours(r.Report.row(c)) == 0 {
				continue
			}
			l.ours, l.oursRatio = q.reported(r.Report, c)
		}
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b line) int { return cmp.Compare(a.loop.log, b.loop.log) })
	return out
}

// logs are those of a cell's transfers.
func (q quantity) logs(r *result, c cell) []float64 {
	var out []float64
	for _, t := range r.Transfers {
		if t.cell == c && !t.Reference {
			out = append(out, math.Log(q.loop(t)))
		}
	}
	return out
}

// ratios are those of a cell's transfers to the reference before and after.
func (q quantity) ratios(r *result, c cell) []float64 {
	var out []float64
	for i, t := range r.Transfers {
		if t.cell == c && !t.Reference {
			before, after := q.loop(r.Transfers[i-1]), q.loop(r.Transfers[i+1])
			out = append(out, math.Log(q.loop(t))-(math.Log(before)+math.Log(after))/2)
		}
	}
	return out
}

// reported is the figure and the ratio of a cell by sshpace.
func (q quantity) reported(r *report, c cell) (figure, ratio estimate) {
	figure.log = math.Log(q.ours(r.row(c)))
	ratio.log = figure.log - math.Log(q.ours(r.row(reference)))
	if c != reference {
		ratio.arm = math.Log1p(q.noise(r) / 100)
	}
	return figure, ratio
}

func (q quantity) table(w io.Writer, r *result, all []line) {
	if r.Report == nil {
		fmt.Fprintf(w, "%-42s %9s  %-21s %9s\n", q.name, "loop", "to the reference", "one pair")
		for _, l := range all {
			fmt.Fprintf(w, "%-42s %9.4g  %-21s %7.1f %%\n", l.cell, l.loop.value(), l.loopRatio, percent(l.loopRatio.spread))
		}
		return
	}
	fmt.Fprintf(w, "%-42s %9s %9s %8s  %-21s %-21s %8s  %s\n", q.name, "loop", "sshpace", "off", "to reference by loop", "by sshpace", "off", "inside")
	for _, l := range all {
		inside := "yes"
		if !l.inside() {
			inside = "NO"
		}
		fmt.Fprintf(w, "%-42s %9.4g %9.4g %+6.1f %%  %-21s %-21s %+6.1f %%  %s\n", l.cell, l.loop.value(), l.ours.value(), percent(l.off()),
			l.loopRatio, l.oursRatio, percent(l.ratioOff()), inside)
	}
}

// sum says how far off cells are. The reference has no ratio to itself.
func sum(w io.Writer, name string, lines []line) {
	rest := slices.DeleteFunc(slices.Clone(lines), func(l line) bool { return l.cell == reference })
	inside := 0
	for _, l := range rest {
		if l.inside() {
			inside++
		}
	}
	fmt.Fprintf(w, "%-8s figures: %s; ratios: %s; inside %d of %d\n", name+":", far(lines, line.off), far(rest, line.ratioOff), inside, len(rest))
}

// far is how far off they are by this measure.
func far(lines []line, off func(line) float64) string {
	if len(lines) == 0 {
		return "none"
	}
	var all []float64
	for _, l := range lines {
		all = append(all, math.Abs(percent(off(l))))
	}
	worst := slices.MaxFunc(lines, func(a, b line) int { return cmp.Compare(math.Abs(off(a)), math.Abs(off(b))) })
	return fmt.Sprintf("median %.1f %%, worst %+.1f %% (%s)", median(all), percent(off(worst)), worst.cell)
}

// common says by how much all figures are off together, as when sshpace lets ssh read what costs it
// more.
func common(w io.Writer, lines []line) {
	var offs []float64
	for _, l := range lines {
		offs = append(offs, l.off())
	}
	shift := mean(offs)
	fmt.Fprintf(w, "common:  all figures %+.1f %%; beside that: %s\n", percent(shift), far(lines, func(l line) float64 { return l.off() - shift }))
}

// floor says how sure the loops are.
func floor(w io.Writer, lines []line) {
	var spreads, arms []float64
	for _, l := range lines {
		spreads, arms = append(spreads, l.loopRatio.spread), append(arms, l.loopRatio.arm)
	}
	fmt.Fprintf(w, "loops:   one pair is off by %.1f %% (standard deviation, median of cells); intervals of ratios: median +-%.1f %%, widest +-%.1f %%\n",
		percent(median(spreads)), percent(median(arms)), percent(slices.Max(arms)))
}

// level says how the reference moved.
func (q quantity) level(w io.Writer, r *result) {
	var all, steps []float64
	for i, t := range r.Transfers {
		if !t.Reference {
			continue
		}
		all = append(all, math.Log(q.loop(t)))
		if t.Place > 0 {
			steps = append(steps, math.Log(q.loop(t)/q.loop(r.Transfers[i-2])))
		}
	}
	var rounds []float64
	for round := range r.Transfers[len(r.Transfers)-1].Round + 1 {
		var logs []float64
		for _, t := range r.Transfers {
			if t.Reference && t.Round == round {
				logs = append(logs, math.Log(q.loop(t)))
			}
		}
		rounds = append(rounds, mean(logs))
	}
	fmt.Fprintf(w, "reference: %.4g; standard deviation of one transfer %.1f %%, from one to the next %.1f %%, of means of rounds %.1f %%\n",
		estimateOf(all).value(), percent(estimateOf(all).spread), percent(estimateOf(steps).spread), percent(estimateOf(rounds).spread))
}

// machine says what the loops shared the machine with.
func machine(w io.Writer, r *result) {
	var wall, others, stolen float64
	for _, t := range r.Transfers {
		wall, others, stolen = wall+float64(t.Wall), others+t.Others, stolen+t.Stolen
	}
	fmt.Fprintf(w, "during the loops other programs took %.0f %% of a core, other guests %.0f %%\n", 100*others/wall, 100*stolen/wall)
}
