//go:build linux

package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/shell"
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
		return []Finding{{
			What: "the ControlMaster hangs: every ssh to this host waits for it", Breaks: true,
			Evidence: fmt.Sprintf("%s gave no answer within %s%s", m.Path, m.Waited.Round(100*time.Millisecond), process(m.PID)),
			Where:    "on this machine; it ends the sessions over it", Do: strings.TrimPrefix(kill(m.PID)+"; rm -f "+path, "; "), Gain: "logins that do not hang",
		}}
	case m.State == Dead && !f.Sharing.Master:
		return []Finding{{
			What: "the socket of a dead ControlMaster is in the way", Breaks: true,
			Evidence: m.Path + " exists, but no program listens on it; ssh complains at every login, and shares no connection",
			Where:    "on this machine", Do: "rm -f " + path, Gain: "no complaint at every login",
		}}
	case len(m.Old) > 0:
		return []Finding{{
			What: "the ControlMaster was opened before the account's groups changed: sessions over it have the old ones", Breaks: true,
			Evidence: fmt.Sprintf("groups over it: %s; of a new login: %s", strings.Join(m.Old, " "), strings.Join(m.New, " ")),
			Where:    "on this machine; open sessions stay, new ones connect anew", Do: "ssh -O stop -S " + path + " " + shell.Word(f.Host), Gain: "sessions with " + gained(m),
		}}
	}
	return nil
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
		Where:    here(f), Do: configure(f, shareSettings...),
		Gain: fmt.Sprintf("about %s of every login but the first (predicted, without the other findings)", ms(cost.Value)),
	}}
}
