package rank

import (
	"math"

	"sshpace/internal/base/stats"
)

// What the level of a whole run may be off by, which nothing within a run can show, as standard
// errors of its logarithm: doc/method.md, "Comparing runs".
const (
	// Nine runs of a minute on an idle virtual machine, within an hour, were 2 % apart in cost and
	// throughput and 4 % in logins.
	runLevel   = 0.02
	loginLevel = 0.04
	lineLevel  = 0.005 // of a cipher or a MAC, beyond what all have in common
	// MethodLevel is for the methods of transfer and programs.
	MethodLevel = 0.04
	// SplitLoginLevel is for logins that "login" breaks down. It is larger than loginLevel: runs of
	// one build, within two hours, were up to 17 % apart in the CPU time of every kind, while other
	// guests of the machine came and went.
	SplitLoginLevel = 0.066
	// Where a loop kept a core busy all the time, both sides cost 10 % less, because they woke each
	// other up less often; two such runs differed by a factor of 2.2 in throughput, and of 1.5 in
	// login times.
	busyCost = 0.08
	busyTime = 0.35
	// From line to line that differs: aes-cbc cost 8 % less relative to aes-ctr, and took 30 % less
	// time.
	busyLineCost = 0.05
	busyLineTime = 0.15
	// Where slices show the work of other guests: a constant part, and a share of that work. Runs
	// that were slowed by 35 to 65 % were 2 to 12 % apart.
	shownLevel = 0.005
	shownShare = 0.10
	// The same after correction: 42 pairs of runs that were slowed by 3 to 51 % were 1.4 % apart
	// then (median), 4 % at most.
	freedShare = 0.05
)

// Level is the standard error that all cells of a run share, as a logarithm: the overall speed of
// the machine. freed means that the work of other guests in slices is corrected for.
func (r *Ranking) Level(by By, freed bool) float64 {
	own, share := pick(by, r.levelCost, r.levelWall), shownShare
	if !r.Slowed.Known {
		return math.Hypot(own, runLevel)
	}
	if freed {
		share = freedShare
	}
	own = math.Hypot(own, r.Slowed.Kept()*pick(by, busyCost, busyTime))
	return math.Hypot(own, math.Hypot(shownLevel, share*r.Slowed.Cost))
}

// LoginLevel is Level for logins.
func (r *Ranking) LoginLevel(by By) float64 {
	return math.Hypot(loginLevel, r.Slowed.Kept()*pick(by, busyCost, busyTime))
}

// LineLevel is the error of one line relative to another between runs, most of all in a disturbed
// run: a cipher that keeps one side waiting gains from being disturbed.
func (r *Ranking) LineLevel(by By) float64 {
	return math.Hypot(lineLevel, r.Slowed.Kept()*pick(by, busyLineCost, busyLineTime))
}

// pick returns the value for a ranking's quantity.
func pick[T any](by By, cost, time T) T {
	if by == Cost {
		return cost
	}
	return time
}

// figure returns an estimate with the interval in which 95 % of repeated runs find it: that
// includes the errors of both runs and the doubt about their levels.
func (r *Ranking) figure(e stats.Estimate, by By) Figure {
	if !e.Known() {
		return Figure{}
	}
	return Figure{e, e.Repeated().WithError(math.Sqrt2*r.Level(by, false), 0).OrNil()}
}
