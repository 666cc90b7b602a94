//go:build linux

// Package doctor finds out what makes ssh slow. A Patient measures the login to one host: every
// wait in its log, the gain of a shared connection, the server's own answers, and one short
// transfer. It logs in with the real ssh under the user's own configuration, a handful of times, at
// most once a second, and never again once a login was refused. Checks judge these facts; each of
// them knows one cause, its cost, and the one remedy.
package doctor

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Finding is a cause with a cost.
type Finding struct {
	Check string `json:"check"`
	What  string `json:"what"`
	// Breaks says that logins fail or hang: there is no number for that. Minor says that nothing is
	// wrong, but there is something to gain. The duration of a login as a whole is not a fault: a
	// busy machine makes it long.
	Breaks   bool           `json:"breaks"`
	Minor    bool           `json:"minor"`
	Cost     stats.Interval `json:"cost_ns"`
	AtLeast  bool           `json:"at_least,omitempty"` // it costs more: we waited no longer
	Per      string         `json:"per"`                // unit of the cost: "login" or "100 MB"
	Evidence string         `json:"evidence"`
	Where    string         `json:"where"` // where to do it
	Do       string         `json:"do"`    // a line for a shell
	Gain     string         `json:"gain"`
}

// The units of a cost.
const (
	perLogin    = "login"
	perTransfer = "100 MB"
)

// Check is one cause.
type Check struct {
	Name  string
	About string // description of the cause, in a few words
	Needs []Probe
	judge func(f *Facts) []Finding
}

// Checks lists all checks.
var Checks = slices.Concat(loginChecks, stageChecks, accountChecks, machineChecks, []Check{stallCheck}, masterChecks)

// Named returns the checks whose names match one of some patterns; all for none.
func Named(patterns []string) []Check {
	if len(patterns) == 0 {
		return Checks
	}
	return slices.DeleteFunc(slices.Clone(Checks), func(c Check) bool { return !alg.Match(patterns, c.Name) })
}

// Needs returns the probes that checks need.
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

// Judge returns the findings of all checks, the costliest first: broken logins, then by time, and
// last the minor ones, in the order of the checks.
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

// order puts false before true.
func order(a, b bool) int {
	if a == b {
		return 0
	}
	return map[bool]int{false: -1, true: 1}[a]
}

// Faults reports whether anything is wrong among the findings.
func Faults(found []Finding) bool {
	return slices.ContainsFunc(found, func(f Finding) bool { return !f.Minor })
}

// far is how many times a usual figure is beyond doubt.
const far = 4

// counts reports whether a cost matters: at least the floor every time, and above its own
// variation, or so far above the floor every time that this does not matter.
func counts(cost stats.Interval, floor time.Duration) bool {
	return cost.N > 0 && cost.Lo >= float64(floor) && (cost.Value >= cost.Hi-cost.Lo || cost.Lo >= float64(far*floor))
}

// beyond returns a figure without its usual part.
func beyond(f stats.Interval, usual time.Duration) stats.Interval {
	if f.N == 0 {
		return f
	}
	return f.Shifted(-float64(usual))
}

// execWork is the longest time of a server to start a command, without the network.
const execWork = 5 * time.Millisecond

// roundTrip returns the least time of a request. TCP's may end at a proxy, or the forwarded port of
// one, before the host, or lose its first packet: then a cheap request shows the real one.
func roundTrip(f *Facts) time.Duration {
	tcp, exec := time.Duration(f.Logins.RoundTrip.Lo), time.Duration(f.Logins.Exec.Lo)
	if f.Logins.Exec.N == 0 {
		return tcp
	}
	return min(max(tcp, exec-execWork), exec)
}
