//go:build linux

package doctor

import (
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
)

// fold makes figures of several logins.
func fold(all []*trace) (l Logins) {
	if len(all) == 0 {
		return l
	}
	last := all[len(all)-1]
	over := func(span func(*trace) time.Duration) stats.Interval { return figure(all, span) }
	phase := func(p login.Phase) stats.Interval {
		return over(func(t *trace) time.Duration {
			if d, told := t.spans[p]; told {
				return d
			}
			return unknown
		})
	}
	l.Whole = over(func(t *trace) time.Duration { return t.whole })
	l.ClientCPU = over(func(t *trace) time.Duration { return t.cpu })
	l.RoundTrip = over(func(t *trace) time.Duration { return t.tcp })
	if last.jump {
		l.RoundTrip = phase(login.Exec)
	}
	l.Lookup = over(func(t *trace) time.Duration { return t.lookup })
	l.GSSAPI = over(func(t *trace) time.Duration { return t.gssapi })
	if l.Proxy, l.User = last.proxy, last.user; l.Proxy == "" {
		l.TCP = phase(login.TCP)
	}
	l.Version = phase(login.Version)
	l.HostKey = over(func(t *trace) time.Duration { return t.ordering + t.spans[login.HostKey] })
	l.Exchange = over(func(t *trace) time.Duration {
		return t.spans[login.KexInit] + t.spans[login.Kex] + t.spans[login.NewKeys] - t.ordering
	})
	l.Query = over(func(t *trace) time.Duration { return t.query })
	l.Signing = over(func(t *trace) time.Duration { return t.signing })
	l.Entry = over(func(t *trace) time.Duration { return t.entry })
	l.Service, l.Request = phase(login.Service), phase(login.AuthNone)
	l.Session, l.Exec, l.Command = phase(login.Channel), phase(login.Exec), phase(login.Command)
	n := last.negotiation
	l.Address, l.Kex, l.Cipher, l.MAC, l.Zipped, l.Offered = last.address, n.Got.Kex, n.Got.Cipher, n.Got.MAC, last.zipped, n.Server
	l.Failed, l.Commands, l.Keys = attempts(all), commands(all), keys(all)
	return l
}

// figure is the median of a span over the logins that tell of it.
func figure(all []*trace, span func(*trace) time.Duration) stats.Interval {
	var told []time.Duration
	for _, t := range all {
		if d := span(t); d != unknown {
			told = append(told, d)
		}
	}
	return middle(told)
}

// middle is the median of durations, with its interval, or their range where they are few.
func middle(all []time.Duration) stats.Interval {
	xs := make([]float64, len(all))
	for i, d := range all {
		xs[i] = float64(d)
	}
	return stats.MedianInterval(xs)
}

// attempts are the addresses that every login tried in vain.
func attempts(all []*trace) (out []Attempt) {
	for i, a := range all[0].failed {
		took := figure(all, func(t *trace) time.Duration {
			if i < len(t.failed) && t.failed[i].address == a.address {
				return t.failed[i].took
			}
			return unknown
		})
		out = append(out, Attempt{a.address, a.why, took})
	}
	return out
}

// commands are those of Match exec. ssh runs each once in every pass over its
// files, so that the same line may count twice.
func commands(all []*trace) (out []Command) {
	for i, c := range all[0].commands {
		took := figure(all, func(t *trace) time.Duration {
			if i < len(t.commands) && t.commands[i].text == c.text {
				return t.commands[i].took
			}
			return unknown
		})
		out = append(out, Command{c.text, c.file, c.line, took})
	}
	return out
}

// keys are those of the last login: what an agent holds does not change in
// between.
func keys(all []*trace) (k Keys) {
	last := all[len(all)-1]
	k.Took = figure(all, func(t *trace) time.Duration { return t.offering })
	for _, line := range last.vain {
		name, _, _ := keyOf(line)
		k.Vain = append(k.Vain, name)
	}
	k.Accepted, k.Fingerprint, k.FromAgent = keyOf(last.accepted)
	return k
}

// keyOf reads "NAME TYPE FINGERPRINT [explicit] [agent]", where a name may hold
// spaces.
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
