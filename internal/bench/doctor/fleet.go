//go:build linux

package doctor

import (
	"io"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// Fleet explains the logins of a fleet, one of each host.
type Fleet struct {
	mu    sync.Mutex
	heard map[*record.Host]*Server
	// usual is how long parts of logins took while this machine was busy, by their first phase.
	usual map[login.Phase]*usual
}

// usual holds the times of one part of many logins.
type usual struct {
	all   []float64
	known int // how many of them most was computed from
	most  float64
}

// few is the number of logins below which nothing is known about the usual time.
const few = 20

// ofBusy returns how much of a wait may be due to the machine, which was busy for a part of it:
// all of that part, but no more than several times as long as others took. A busy machine delays
// everybody.
func (u *usual) ofBusy(busy time.Duration) time.Duration {
	const nineOfTen = 0.9
	if u == nil || len(u.all) < few {
		return busy
	}
	if len(u.all) > u.known+u.known/4 {
		u.known, u.most = len(u.all), stats.Quantile(u.all, nineOfTen)
	}
	return min(busy, time.Duration(far*u.most))
}

// fleetChecks returns the checks for which one login has the facts.
func fleetChecks() []Check {
	return slices.Concat(Named([]string{"dns", "refused", "no-shell"}), stageChecks)
}

// Ask returns the questions to a host whose own half of the login was slow; "" for none.
func (f *Fleet) Ask(h *record.Host) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	facts := f.facts(h)
	f.learn(h)
	for _, s := range stages {
		if s.theirs && len(s.judge(facts)) > 0 {
			return facts.Logins.questions(1)
		}
	}
	return ""
}

// Hear reads the answers.
func (f *Fleet) Hear(h *record.Host, answers io.Reader) {
	s := hear(answers)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.heard == nil {
		f.heard = map[*record.Host]*Server{}
	}
	f.heard[h] = s
}

// Explain fills in the causes.
func (f *Fleet) Explain(all []*record.Host) {
	f.usual = nil
	for _, h := range all {
		f.learn(h)
	}
	for _, h := range all {
		facts := f.facts(h)
		facts.Server = f.heard[h]
		h.Causes = []record.Cause{}
		for _, x := range Judge(fleetChecks(), facts) {
			h.Causes = append(h.Causes, record.Cause{Check: x.Check, What: x.What, CostNS: time.Duration(x.Cost.Value), Breaks: x.Breaks, Where: x.Where, Do: x.Do})
		}
	}
}

// facts returns the facts of one login. Each figure is one measurement; its lower bound leaves out
// the part that may be due to this machine.
func (f *Fleet) facts(h *record.Host) *Facts {
	facts := &Facts{Destination: openssh.Destination{Host: h.Name, Label: h.Name}, KnownAs: h.Name, Jumps: h.Via}
	took := func(part ...login.Phase) stats.Interval { return f.took(h, part) }
	l := &facts.Logins
	l.Whole, l.RoundTrip = one(h.WallNS), one(h.RTTNS)
	l.Lookup, l.TCP, l.Version = took(record.PhaseStart), took(record.PhaseTCP), took(record.PhaseVersion)
	l.Exchange, l.HostKey = took(record.PhaseKexInit, record.PhaseKex, record.PhaseNewKeys), took(record.PhaseHostKey)
	l.Service, l.Request, l.Query = took(record.PhaseService), took(record.PhaseAuthNone), beyond(took(record.PhaseQuery), h.VainNS)
	if l.Entry = beyond(took(record.PhaseSign), h.SigningNS); l.Entry.N > 0 {
		l.Signing = one(h.SigningNS)
	}
	l.Session, l.Command = took(record.PhaseChannel), took(record.PhaseCommand)
	l.Kex, l.Cipher, l.Offered = h.Suite.Kex, h.Suite.Cipher, h.Offer
	if len(h.Via) > 0 { // TCP's round trip is not the host's, and its connection is a jump host's
		exec, _ := h.Phase(record.PhaseExec)
		l.Proxy, l.Exec, l.TCP, l.Version = "ProxyJump", one(exec.WallNS), stats.Interval{}, took(record.PhaseTCP).Plus(took(record.PhaseVersion))
	}
	if h.Class == "" && h.Exit != nil && *h.Exit != 0 {
		facts.NoCommands = &NoCommands{Status: *h.Exit}
	}
	facts.failed(h)
	return facts
}

// one returns a figure that was measured once.
func one(d time.Duration) stats.Interval {
	return stats.Interval{Value: float64(d), Lo: float64(d), Hi: float64(d), N: 1}
}

// failed fills in the facts of a login that hung or was refused.
func (f *Facts) failed(h *record.Host) {
	if h.Class == "" || len(h.Phases) == 0 {
		return
	}
	last := h.Phases[len(h.Phases)-1]
	cause, _ := openssh.CauseOf([]string{h.Banner})
	switch {
	case h.Class == "throttled":
		f.Refusal = &Refusal{Said: h.Failure, Startup: cause == openssh.Throttled, Penalty: cause == openssh.Penalized}
	case h.Class == "command_timeout", h.Class == "timeout" && last.Unended && !slices.ContainsFunc(h.Phases, func(p record.LoginPhase) bool { return p.WallNS > last.WallNS }):
		// A login that an earlier phase made late need not hang in its last one.
		f.Stuck = &Stuck{During: last.Phase, Signed: h.SigningNS > 0, After: last.WallNS, Got: h.Suite}
	}
}

// parts lists the phases behind each figure.
var parts = [][]login.Phase{
	{record.PhaseStart}, {record.PhaseTCP}, {record.PhaseVersion}, {record.PhaseKexInit, record.PhaseKex, record.PhaseNewKeys}, {record.PhaseHostKey},
	{record.PhaseService}, {record.PhaseAuthNone}, {record.PhaseQuery}, {record.PhaseSign}, {record.PhaseChannel}, {record.PhaseExec}, {record.PhaseCommand},
}

// span adds up some phases; ok is false where one of them is missing.
func span(h *record.Host, phases []login.Phase) (sum record.LoginPhase, ok bool) {
	for _, name := range phases {
		p, ended := h.Phase(name)
		if !ended {
			return sum, false
		}
		sum.WallNS, sum.BusyNS = sum.WallNS+p.WallNS, sum.BusyNS+p.BusyNS
	}
	return sum, true
}

// learn records the times of the parts of a login on a busy machine.
func (f *Fleet) learn(h *record.Host) {
	for _, part := range parts {
		if sum, ok := span(h, part); ok && sum.BusyNS > 0 {
			if f.usual == nil {
				f.usual = map[login.Phase]*usual{}
			}
			if f.usual[part[0]] == nil {
				f.usual[part[0]] = &usual{}
			}
			f.usual[part[0]].all = append(f.usual[part[0]].all, float64(sum.WallNS))
		}
	}
}

// lostPacket is how long a packet that is lost delays a login that was made once. Linux sends it
// again after 200 ms at the earliest (TCP_RTO_MIN).
const lostPacket = 250 * time.Millisecond

// took returns the time of a part, with its doubt.
func (f *Fleet) took(h *record.Host, part []login.Phase) stats.Interval {
	sum, ok := span(h, part)
	if !ok {
		return stats.Interval{}
	}
	x := one(sum.WallNS)
	x.Lo -= float64(lostPacket + f.usual[part[0]].ofBusy(sum.BusyNS))
	return x
}
