//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
)

// shareFloor is the saving of a shared connection from which on its setting is worth it.
const shareFloor = 300 * time.Millisecond

// masterChecks are about shared connections (ssh_config(5) ControlMaster).
var masterChecks = []Check{
	{"master", "a ControlMaster that hangs, is gone, or keeps old groups", []Probe{Masters, Shared}, badMaster},
	{"sharing", "connections that could be shared", []Probe{LoggingIn, Shared}, unshared},
}

// shareSettings make connections shared and kept for a while.
var shareSettings = []string{"ControlMaster auto", "ControlPath ~/.ssh/cm-%C", "ControlPersist 10m"}

func badMaster(f *Facts) []Finding {
	m := f.Master
	if m == nil {
		return nil
	}
	path := shell.Word(m.Path)
	switch {
	case m.State == Hung:
		waits, ends := "every ssh", "the sessions over it"
		if m.Unset {
			waits = "every run and copy of sshpace"
		}
		if m.Keep {
			ends = "all connections that it keeps"
		}
		return []Finding{{
			What: "the " + m.name() + " hangs: " + waits + " to this host waits for it", Breaks: true,
			Evidence: fmt.Sprintf("%s gave no answer within %s%s", m.Path, m.Waited.Round(100*time.Millisecond), process(m.PID)),
			Where:    "on this machine; it ends " + ends, Do: strings.TrimPrefix(kill(m.PID)+"; rm -f "+path, "; "), Gain: "logins that do not hang",
		}}
	case m.State == Dead && !f.Sharing.Master:
		return []Finding{{
			What: "the socket of a dead ControlMaster is in the way", Breaks: true,
			Evidence: m.Path + " exists, but no program listens on it; ssh complains at every login, and shares no connection",
			Where:    "on this machine", Do: "rm -f " + path, Gain: "no complaint at every login",
		}}
	case len(m.Old) > 0:
		do := "ssh -O stop -S " + path + " " + shell.Word(f.Host)
		if m.Keep {
			do = "sshpace keep --refresh " + shell.Word(f.Host)
		}
		return []Finding{{
			What: "the " + m.name() + " was opened before the account's groups changed: sessions over it have the old ones", Breaks: true,
			Evidence: fmt.Sprintf("groups over it, opened %s ago: %s; of a new login: %s", unit.Age(m.Age), strings.Join(m.Old, " "), strings.Join(m.New, " ")),
			Where:    "on this machine; open sessions stay, new ones connect anew", Do: do, Gain: "sessions with " + gained(m),
		}}
	}
	return nil
}

// name returns what the user calls it.
func (m *Master) name() string {
	if m.Keep {
		return "connection of sshpace keep"
	}
	return "ControlMaster"
}

// Kept is a connection that is there, and the time of a session over it.
type Kept struct {
	Path    string          `json:"path"`
	Age     time.Duration   `json:"age_ns"`
	Session *stats.Interval `json:"session_ns,omitempty"`
	Ratio   *stats.Interval `json:"login_ratio,omitempty"` // of that to a login
	Words   string          `json:"-"`
}

// Kept returns the connection of a master that lives; nil where none does.
func (f *Facts) Kept() *Kept {
	m, s, whole := f.Master, f.Sharing.Session, f.Logins.Whole
	if m == nil || m.State != Live {
		return nil
	}
	k := &Kept{Path: m.Path, Age: m.Age, Session: s.OrNil(), Words: "A connection has been kept for " + unit.Age(m.Age) + ": its sessions have the groups of that login"}
	if k.Session != nil {
		k.Words += ", and take " + Milliseconds(s)
	}
	if k.Session != nil && whole.N > 0 {
		ratio := s.Over(whole)
		k.Ratio = &ratio
		k.Words += ", " + k.Ratio.Times() + " of a new login"
	}
	k.Words += "."
	return k
}

func gained(m *Master) string {
	fresh := slices.DeleteFunc(slices.Clone(m.New), func(g string) bool { return slices.Contains(m.Old, g) })
	if len(fresh) == 0 {
		return "the present groups only"
	}
	return "group " + strings.Join(fresh, ", ")
}

func process(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("; process %d listens there", pid)
}

func kill(pid int) string {
	if pid == 0 {
		return ""
	}
	return fmt.Sprintf("kill -KILL %d", pid)
}

// unshared is the saving of a shared connection beyond the other findings: those causes have their
// own remedies. It is not a fault, however long logins take.
func unshared(f *Facts) []Finding {
	s := f.Sharing
	if f.Own || s.Master && s.Persist || s.Session.N == 0 || f.Master != nil {
		return nil
	}
	cost := f.Logins.Whole.Less(s.Session)
	for _, other := range Judge(slices.Concat(loginChecks, stageChecks, []Check{knownHostsCheck, stallCheck}), f) {
		if other.Per == perLogin && other.Check != "shell" {
			cost = beyond(cost, time.Duration(other.Cost.Value))
		}
	}
	if !counts(cost, shareFloor) {
		return nil
	}
	return []Finding{{
		What: "every ssh logs in again: connections are not shared and kept", Minor: true, Cost: cost, Per: perLogin,
		Evidence: fmt.Sprintf("a login takes %s, a session over a shared connection %s", Milliseconds(f.Logins.Whole), Milliseconds(s.Session)),
		Where:    here(f) + "; or, for all programs and as long as you want: " + keepLine(f), Do: configure(f, shareSettings...),
		Gain: fmt.Sprintf("about %s of every login but the first (predicted, without the other findings)", ms(cost.Value)),
	}}
}

// keepLine returns the command that keeps a connection to the host.
func keepLine(f *Facts) string {
	return shell.Line(slices.Concat([]string{"sshpace", "keep"}, f.Flags.Options(), []string{"-w", f.Host})...)
}
