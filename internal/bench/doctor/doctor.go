//go:build linux

// Package doctor says what makes ssh slow. A Patient measures what a login to one host goes
// through: every wait that its log tells of, what a shared connection would save, what the
// server itself knows, and one short transfer. It logs in with the real ssh under the user's own
// configuration, a handful of times, at most once a second, and never again once a login was
// refused. Over these facts stand judges, each of which knows one cause, what it costs, and the
// one thing to do about it.
package doctor

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Finding is something that costs.
type Finding struct {
	Check string `json:"check"`
	What  string `json:"what"`
	// Breaks says that logins fail or hang: there is no number for that. Minor says that
	// nothing is wrong: there is something to gain. What a login takes as a whole is no fault:
	// a busy machine makes it long.
	Breaks   bool           `json:"breaks"`
	Minor    bool           `json:"minor"`
	Cost     stats.Interval `json:"cost_ns"`
	AtLeast  bool           `json:"at_least,omitempty"` // it costs more: we waited no longer
	Per      string         `json:"per"`                // what costs so much: "login" or "100 MB"
	Evidence string         `json:"evidence"`
	Where    string         `json:"where"` // where to do it
	Do       string         `json:"do"`    // a line for a shell
	Gain     string         `json:"gain"`
}

// What a cost belongs to.
const (
	perLogin    = "login"
	perTransfer = "100 MB"
)

// Check is one cause.
type Check struct {
	Name  string
	About string // what it looks for, in a few words
	Needs []Probe
	judge func(f *Facts) []Finding
}

// Checks are all of them.
var Checks = slices.Concat(loginChecks, stageChecks, accountChecks, machineChecks, []Check{stallCheck}, masterChecks)

// Named are the checks whose names match one of some patterns; all for none.
func Named(patterns []string) []Check {
	if len(patterns) == 0 {
		return Checks
	}
	return slices.DeleteFunc(slices.Clone(Checks), func(c Check) bool { return !alg.Match(patterns, c.Name) })
}

// Needs are the probes that checks need.
func Needs(checks []Check) (all []Probe) {
	for _, c := range checks {
		for _, p := range c.Needs {
			if !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
	}
	return all
}

// Judge is what the facts tell, the costliest first: what breaks logins, then by
// time, and last what is no fault, in the order of the checks.
func Judge(checks []Check, f *Facts) []Finding {
	found := []Finding{}
	for _, c := range checks {
		for _, finding := range c.judge(f) {
			finding.Check = c.Name
			found = append(found, finding)
		}
	}
	slices.SortStableFunc(found, func(a, b Finding) int {
		if a.Minor && b.Minor {
			return 0
		}
		return cmp.Or(-order(a.Breaks, b.Breaks), order(a.Minor, b.Minor), cmp.Compare(b.Cost.Value, a.Cost.Value))
	})
	return found
}

// order puts what is not before what is.
func order(a, b bool) int {
	if a == b {
		return 0
	}
	return map[bool]int{false: -1, true: 1}[a]
}

// Faults tells whether something is wrong among what was found.
func Faults(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return !f.Minor })
}

// worth tells whether a cost is one: at least the floor every time, and above what it
// varies by, or so far above the floor every time that this does not matter.
func worth(cost stats.Interval, floor time.Duration) bool {
	const far = 4
	return cost.N > 0 && cost.Lo >= float64(floor) && (cost.Value >= cost.Hi-cost.Lo || cost.Lo >= float64(far*floor))
}

// beyond is a figure without what it would be anyway.
func beyond(f stats.Interval, usual time.Duration) stats.Interval {
	if f.N == 0 {
		return f
	}
	return f.Shifted(-float64(usual))
}

// execWork is what a server takes at most to start a command, beyond the way there and back.
const execWork = 5 * time.Millisecond

// roundTrip is the least that a request takes. TCP's may end at a proxy, or the forwarded
// port of one, before the host, or lose its first packet: then a request that costs little
// tells more.
func roundTrip(f *Facts) time.Duration {
	tcp, exec := time.Duration(f.Logins.RoundTrip.Lo), time.Duration(f.Logins.Exec.Lo)
	if f.Logins.Exec.N == 0 {
		return tcp
	}
	return min(max(tcp, exec-execWork), exec)
}
