// Package scan looks at the host keys of many hosts without logging in, and judges which of them
// somebody vouches for: known_hosts files, host certificates, the DNS, a list of fingerprints.
package scan

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/reach"
)

// Params of a scan.
type Params struct {
	All      bool  // one key of each type, not only the one that a login would see
	List     *List // nil: none
	Fanout   fanout.Params
	Progress func(done, total int)
}

// State is how a key is known.
type State string

// The states.
const (
	Known        State = "known"        // ssh accepts it
	Confirmed    State = "confirmed"    // it is new, and somebody vouches for it
	Unconfirmed  State = "unconfirmed"  // it is new
	Contradicted State = "contradicted" // the list has another key of the host
	Changed      State = "changed"      // known_hosts has
	Revoked      State = "revoked"
)

// Key is a key that a host has shown.
type Key struct {
	Type        string `json:"type"`
	Fingerprint string `json:"fingerprint"`
	State       State  `json:"state"`
	By          string `json:"confirmed_by,omitempty"`
	Why         string `json:"why,omitempty"`
}

// Host is a host that was looked at.
type Host struct {
	Host  string `json:"host"`
	Name  string `json:"known_as,omitempty"` // in known_hosts
	Keys  []Key  `json:"keys"`
	Class string `json:"class,omitempty"` // of a failure
	Err   string `json:"error,omitempty"`

	hint   string
	target host.Host
	look   *reach.Look
}

// Report is the result, in the order of the hosts.
type Report []*Host

// Run looks at the hosts. The error is ctx's cause, or the interrupt of Drain; the report is right
// in any case.
func Run(ctx context.Context, p Params, hosts []host.Host, e *reach.Executor) (Report, error) {
	s := &scanner{Executor: e, all: p.All, progress: p.Progress}
	for _, h := range hosts {
		s.report = append(s.report, &Host{Host: h.String(), Keys: []Key{}, target: h, look: &reach.Look{}})
	}
	e.Warm(ctx, hosts)
	_, err := fanout.Run(ctx, p.Fanout, hosts, fleet.Command{}, s, s)
	for _, h := range s.report {
		h.judge(ctx, p.List)
	}
	return s.report, err
}

// scanner looks at keys, and collects how that ended.
type scanner struct {
	*reach.Executor
	fleet.Nothing
	all      bool
	progress func(done, total int)
	report   Report
}

// Execute looks at the keys of one host.
func (s *scanner) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	return s.Look(ctx, h, s.all, a, s.report[a.Index()].look)
}

// Done keeps the end of a host.
func (s *scanner) Done(r fleet.Result, so fleet.Summary) error {
	if r.Class != fleet.NoFailure {
		h := s.report[r.Index]
		h.Class, h.Err, h.hint = r.Class.String(), r.Err, r.Hint
	}
	s.progress(so.Total(), len(s.report))
	return nil
}

// judge decides about the keys of a host.
func (h *Host) judge(ctx context.Context, list *List) {
	h.Name = h.look.Name
	shown := h.look.Keys(ctx)
	for _, s := range shown {
		k := Key{Type: s.Type(), Fingerprint: ssh.FingerprintSHA256(s), State: stateOf(s.Kind)}
		if k.State == Changed || k.State == Revoked {
			k.Why = s.Why
		}
		if s.Certified {
			k.State, k.By = Confirmed, "its certificate"
		}
		k.askDNS(h.look, s.PublicKey)
		if list != nil {
			k.ask(list, h, shown)
		}
		if k.State == Confirmed {
			h.look.Confirmed = append(h.look.Confirmed, s.PublicKey)
		}
		h.Keys = append(h.Keys, k)
	}
}

// stateOf returns what known_hosts files say.
func stateOf(k check.Kind) State {
	switch k {
	case check.Unknown:
		return Unconfirmed
	case check.Changed:
		return Changed
	case check.Revoked:
		return Revoked
	}
	return Known
}

// askDNS compares a key with the records of the host in the DNS. Those that are not validated are
// only shown.
func (k *Key) askDNS(l *reach.Look, key ssh.PublicKey) {
	if l.DNSErr != nil && k.State == Unconfirmed {
		k.Why = l.DNSErr.Error()
	}
	if l.DNS == nil || k.State == Changed || k.State == Revoked {
		return
	}
	switch has, matches := l.DNS.Of(key); {
	case !has, k.State != Unconfirmed && (matches || !l.DNS.Validated):
	case !matches && l.DNS.Validated:
		k.State, k.By, k.Why = Contradicted, "", "validated SSHFP records in the DNS are of another key"
	case !matches:
		k.Why = "SSHFP records in the DNS, not validated, are of another key"
	case !l.DNS.Validated:
		k.Why = "the DNS has it (SSHFP), not validated"
	case !l.ByDNS:
		k.Why = "the DNS has it (SSHFP, validated), VerifyHostKeyDNS is ask"
	default:
		k.State, k.By = Confirmed, "SSHFP in the DNS"
	}
}

// ask compares a key with the list. A line of another key that the host has shown says nothing
// against it.
func (k *Key) ask(list *List, h *Host, shown []reach.Shown) {
	lines := list.of(h.Name, knownhosts.HostPort(h.target.Name, int(h.target.Port)), h.target.Name)
	if i := slices.IndexFunc(lines, func(l listLine) bool { return l.fingerprint == k.Fingerprint }); i >= 0 {
		where := fmt.Sprintf("%s:%d", list.Name, lines[i].number)
		switch k.State {
		case Unconfirmed:
			k.State, k.By, k.Why = Confirmed, where, ""
		case Changed:
			k.Why += "; the new one is that of " + where
		}
		return
	}
	reasons := []string{k.Why, list.others(k.Fingerprint)}
	i := slices.IndexFunc(lines, func(l listLine) bool {
		isShown := slices.ContainsFunc(shown, func(s reach.Shown) bool { return ssh.FingerprintSHA256(s) == l.fingerprint })
		return !isShown && (l.kind == "" || l.kind == kindOf(k.Type))
	})
	if i >= 0 {
		reasons = append(reasons, fmt.Sprintf("it shows %s %s, %s:%d has %s", k.Type, k.Fingerprint, list.Name, lines[i].number, lines[i].fingerprint))
	}
	if i >= 0 && k.State != Changed && k.State != Revoked {
		k.State, k.By = Contradicted, ""
	}
	if k.State != Known && k.State != Confirmed {
		k.Why = strings.Join(slices.DeleteFunc(reasons, func(text string) bool { return text == "" }), "; ")
	}
}

// Looks returns the looks at the hosts, with the keys that may be recorded.
func (r Report) Looks() (all []*reach.Look) {
	for _, h := range r {
		all = append(all, h.look)
	}
	return all
}
