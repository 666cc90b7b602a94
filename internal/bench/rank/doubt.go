package rank

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Limits beyond which a ranking has a warning.
const (
	muchDrift   = 5.0  // percent over the run
	muchError   = 8.0  // percent, of predictions at the 95th percentile
	muchFailure = 0.05 // share of trials
	muchSlowed  = 8.0  // percent: slices differ by some percent on an undisturbed machine, too
)

// Throttled is the name of the warning that a processor was slowed by heat or a weak supply.
const Throttled = "throttled"

// doubts lists the warnings to read before the numbers are trusted.
func doubts(r *Ranking, d *data) []Warning {
	var out []Warning
	add := func(when bool, name, text, hint string) {
		if when {
			out = append(out, Warning{name, text, hint})
		}
	}
	imported := r.Campaign.Imported != ""
	hint := func(text string) string {
		if imported { // a log cannot be continued
			return ""
		}
		return text
	}
	add(r.Truncated, "truncated", "the last record of the file is cut off: the run was killed", "continue with --resume")
	whole := "times are those of whole processes, with start and login"
	if imported {
		whole = "times are those that the log gives of whole copies, mostly with start and login"
	}
	add(len(d.copies) > 0, "whole-processes", whole, hint("bench without --exhaustive separates them"))
	add(d.coarsest() != "", "coarse-clock", d.coarsest(), "measure with sshpace bench")
	add(imported, "imported", "imported from a log of "+r.Campaign.Imported+": values that it does not give are unknown", "")
	add(r.By == Cost && !r.forced, "by-cost", fmt.Sprintf("ranked by CPU cost, which repeats better from run to run: it shows differences of %s or more, throughput of %s or more",
		unit.Difference(r.Noise.Cost/100), unit.Difference(r.Noise.Throughput/100)), "--rank-by throughput ranks by it all the same")
	add(r.Slowed.Percent() > muchSlowed, "slowed", fmt.Sprintf("other guests slowed this machine by %s, compared with its best moments; all figures may be off by a common factor of up to %s",
		unit.Difference(r.Slowed.Percent()/100), unit.Digits(math.Exp(stats.Estimate{Err: r.Level(r.By, false)}.Arm()))), "ratios are reliable, and comparisons with other runs allow for it")
	add(len(r.Beside) > 0, "beside", besideText(r.Beside), "")
	add(r.Slowed.Busy(), "foreign", fmt.Sprintf("other programs kept %.1f of %s busy, which costs some ciphers more than others: only differences above %s count",
		r.Slowed.Foreign, unit.Count(r.Environment.Cores, "core"), unit.Difference(r.Tie()/100)), hint("end them (top shows them), and measure again"))
	add(r.Heat.Slowed > 0, Throttled, r.Heat.text(), "cool it, or power it better, and measure again")
	client := len(r.Bulk) == 0 || slices.ContainsFunc(r.Bulk, func(c Cell) bool { return c.Client.Known() })
	server := len(r.Bulk) == 0 || slices.ContainsFunc(r.Bulk, func(c Cell) bool { return c.Server.Known() })
	add(!client && len(d.copies) == 0, "no-cpu-time", "the CPU time of ssh could not be read here: ranked by throughput only", "")
	add(client && !server, "no-server-cpu-time", "the CPU time of the server could not be read: costs are the client's alone", "")
	add(math.Abs(r.Harness.Drift) > muchDrift, "drift", fmt.Sprintf("at the end of the run the machine was %sx as fast as at its beginning; the ranking corrects for it", unit.Digits(1/(1+r.Harness.Drift/100))), "")
	add(r.Model.HoldoutP95 > muchError, "model", fmt.Sprintf("predictions are off by up to %s, checked on %d measured combinations", unit.Difference(r.Model.HoldoutP95/100), r.Model.HoldoutCells),
		hint("a longer --budget measures more cells directly"))
	add(r.Tie() > 2*maxNoise && r.Campaign.Server != record.ServerRemote, "noise", fmt.Sprintf("differences below %s are within the noise", unit.Difference(r.Tie()/100)), hint("a longer --budget, or a quieter machine"))
	add(len(r.Missing)+len(r.Waiting) > 0 && len(r.Bulk) > 0, "missing", "not measured: "+r.missing(), hint(r.further()))
	add(len(r.Failed) > 0, "failed", fmt.Sprintf("never worked: %d of the requested combinations", len(r.Failed)), "")
	add(float64(len(d.bad)) > muchFailure*float64(r.Trials), "failures", fmt.Sprintf("%d of %d trials failed: %s", len(d.bad), r.Trials, r.failureText()), hint("see the messages in the file; continue with --resume"))
	add(r.OneCore(), "one-core", "one core: client and server took turns, so throughput is that of both together", "")
	for _, c := range r.Controls {
		add(c.Separated, "control", fmt.Sprintf("%s and %s, one computation, came out %.1f %% apart in login time",
			c.A, c.B, 100*math.Abs(c.Ratio.Value-1)), "differences of this size are noise")
	}
	return out
}

// further says how to measure the rest: on a host only allowed suites are measured, unless --all is
// set.
func (r *Ranking) further() string {
	if r.Campaign.Server == record.ServerRemote && !r.Campaign.All {
		return "a longer --budget, or --all for choices that the policy does not allow"
	}
	return "a longer --budget, or --resume"
}

// missing counts the cells that were not measured and cannot be predicted.
func (r *Ranking) missing() string {
	var words []string
	if n := len(r.Missing); n > 0 {
		words = append(words, unit.Count(n, "combination")+" of cipher and MAC")
	}
	if n := len(r.Waiting); n > 0 {
		words = append(words, unit.Count(n, "key exchange"))
	}
	return strings.Join(words, ", ")
}

// failureText lists why trials failed, most frequent first, such as "4 refused, 1 timeout".
func (r *Ranking) failureText() string {
	var parts []string
	for _, outcome := range slices.SortedFunc(maps.Keys(r.Refusals), func(a, b record.Outcome) int {
		return cmp.Or(cmp.Compare(r.Refusals[b], r.Refusals[a]), cmp.Compare(a, b))
	}) {
		word := string(outcome)
		if outcome == record.OK {
			word = "without bytes or time"
		}
		parts = append(parts, fmt.Sprintf("%d %s", r.Refusals[outcome], word))
	}
	return strings.Join(parts, ", ")
}
