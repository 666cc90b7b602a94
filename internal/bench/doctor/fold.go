//go:build linux

package doctor

import (
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
)

// fold combines several logins into figures.
func fold(all []*trace) (l Logins) {
	if len(all) == 0 {
		return l
	}
	l.Keys = keys(all)
	for span, to := range map[login.Phase]*stats.Interval{
		whole: &l.Whole, cpu: &l.ClientCPU, connecting: &l.RoundTrip, lookup: &l.Lookup, kerberos: &l.GSSAPI, record.PhaseTCP: &l.TCP, record.PhaseVersion: &l.Version,
		hostKey: &l.HostKey, exchange: &l.Exchange, known: &l.Query, signing: &l.Signing, entry: &l.Entry, record.PhaseService: &l.Service,
		record.PhaseAuthNone: &l.Request, record.PhaseChannel: &l.Session, record.PhaseExec: &l.Exec, record.PhaseCommand: &l.Command,
	} {
		*to = figure(all, span)
	}
	last := all[len(all)-1]
	if l.Proxy, l.User = last.proxy, last.user; last.proxied {
		l.RoundTrip = l.Exec
	}
	if l.Proxy != "" {
		l.TCP = stats.Interval{}
	}
	n := last.negotiation
	l.Address, l.Kex, l.Cipher, l.Zipped, l.Offered = last.address, n.Got.Kex, n.Got.Cipher, last.zipped, n.Server
	l.Failed, l.Commands = slices.Clone(all[0].failed), slices.Clone(all[0].commands)
	for i, a := range l.Failed { // addresses that every login tried in vain
		l.Failed[i].Took = figure(all, nth(i, a.Address))
	}
	for i, c := range l.Commands {
		l.Commands[i].Took = figure(all, nth(i, c.Text))
	}
	return l
}

// figure returns the median of a span over the logins that have it.
func figure(all []*trace, span login.Phase) stats.Interval {
	var told []time.Duration
	for _, t := range all {
		if d, is := t.spans[span]; is {
			told = append(told, d)
		}
	}
	return middle(told)
}

// middle returns the median of durations, with its interval, or their range where they are few.
func middle(all []time.Duration) stats.Interval {
	xs := make([]float64, len(all))
	for i, d := range all {
		xs[i] = float64(d)
	}
	return stats.MedianInterval(xs)
}

// keys returns the keys that the last login tried: an agent's keys do not change between logins.
func keys(all []*trace) (k Keys) {
	last := all[len(all)-1]
	k.Took = figure(all, offering)
	for _, line := range last.vain {
		name, _, _ := keyOf(line)
		k.Vain = append(k.Vain, name)
	}
	k.Accepted, k.Fingerprint, k.FromAgent = keyOf(last.accepted)
	return k
}

// keyOf parses "NAME TYPE FINGERPRINT [explicit] [agent]", where a name may hold spaces.
func keyOf(line string) (name, fingerprint string, agent bool) {
	before, rest, ok := strings.Cut(line, " SHA256:")
	if !ok {
		return line, "", false
	}
	name = before
	if i := strings.LastIndexByte(before, ' '); i >= 0 {
		name = before[:i]
	}
	words := strings.Fields(rest)
	return name, "SHA256:" + words[0], slices.Contains(words[1:], "agent")
}
