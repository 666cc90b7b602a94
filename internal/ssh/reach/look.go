package reach

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/sshfp"
)

// Look is what a look at the keys of one host has shown.
type Look struct {
	Name      string          // of the host in known_hosts files; "" if it was not found out
	Confirmed []ssh.PublicKey // keys that may be recorded, if the caller finds any

	// DNS is what the DNS says of the keys, where VerifyHostKeyDNS asks for it; ByDNS, that it may
	// confirm them.
	DNS    *sshfp.Answer
	DNSErr error
	ByDNS  bool

	shown   []ssh.PublicKey
	offered []string // host key algorithms of the server
	target  *dial.Target
}

// Shown is a host key that a server has shown, and has proved to hold.
type Shown struct {
	ssh.PublicKey            // never a certificate
	Kind          check.Kind // why it may not speak for the host; 0: it may
	Why           string     // in words
	Certified     bool       // it may by its certificate alone
}

// Look asks a host for its key, the one that a login there would see, or for one of each type. It
// does not log in, and continues after an attempt that failed.
func (e *Executor) Look(ctx context.Context, h host.Host, all bool, a fleet.Attempt, l *Look) fleet.Outcome {
	t, err := e.Target(ctx, h)
	if err != nil {
		return onlyWithSSH(Unreached(err), seesKeys)
	}
	l.target, l.Name = t, knownhosts.HostPort(t.HostKeyName())
	o := fleet.Outcome{Ran: fleet.RanYes} // where an earlier attempt has seen everything
	for algorithms := []string(nil); len(l.shown) == 0 || all; {
		if len(l.shown) > 0 {
			if algorithms = l.next(); algorithms == nil {
				break
			}
		}
		key, offered, ended := e.native.HostKey(ctx, t, algorithms, a)
		if o = ended; key == nil {
			return onlyWithSSH(o, seesKeys)
		}
		l.shown, l.offered = append(l.shown, key), offered
	}
	if p, err := e.plan(ctx, h); err == nil && p.Host.AsksDNS() {
		l.DNS, l.DNSErr = e.params.DNS.Lookup(ctx, t.HostName)
		l.ByDNS = p.Host.Yes(conf.VerifyHostKeyDNS)
	}
	a.Reached(fleet.PhaseExec)
	return o
}

// Hints for hosts that only ssh can reach.
const (
	seesKeys    = "only ssh itself can: log in once, and compare the fingerprint that it shows"
	seesWhereTo = "only ssh itself can: sshpace doctor HOST explains its logins"
)

// onlyWithSSH corrects the hint of a host that only ssh can reach: no engine can be chosen here.
func onlyWithSSH(o fleet.Outcome, hint string) fleet.Outcome {
	if _, needs := errors.AsType[*needsSSH](o.Cause); needs || o.Class == fleet.NoCommonAlgo {
		o.Hint = hint
	}
	return o
}

// Watch runs cmd on a host by a login of its own in this process, and fills in seen.
func (e *Executor) Watch(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt, seen *dial.Seen) fleet.Outcome {
	t, err := e.Target(ctx, h)
	if err != nil {
		return onlyWithSSH(Unreached(err), seesWhereTo)
	}
	return onlyWithSSH(e.native.Watch(ctx, t, cmd, a, seen), seesWhereTo)
}

// next returns the algorithms of a type of key that the server has and has not shown, as far as ssh
// would ask for them; nil if there is none.
func (l *Look) next() []string {
	asked := l.target.HostKeyAlgorithms
	if asked == nil {
		asked = ssh.SupportedAlgorithms().HostKeys
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(name string) bool {
		return !slices.Contains(l.offered, name) ||
			slices.ContainsFunc(l.shown, func(key ssh.PublicKey) bool { return plain(key).Type() == signs(alg.Plain(name)) })
	})
	if len(left) == 0 {
		return nil
	}
	return slices.DeleteFunc(left, func(name string) bool { return signs(alg.Plain(name)) != signs(alg.Plain(left[0])) })
}

// plain returns the key inside a certificate.
func plain(key ssh.PublicKey) ssh.PublicKey {
	if cert, ok := key.(*ssh.Certificate); ok {
		return cert.Key
	}
	return key
}

// Keys decides about the keys by the known_hosts files.
func (l *Look) Keys(ctx context.Context) (keys []Shown) {
	for _, key := range l.shown {
		s := Shown{PublicKey: plain(key)}
		v := l.check(ctx, key, &s)
		if _, isCert := key.(*ssh.Certificate); isCert && s.Kind == 0 {
			inside := Shown{}
			l.check(ctx, s.PublicKey, &inside)
			s.Certified = inside.Kind == check.Unknown
		}
		if v != nil && v.OneMore(l.shown) {
			s.Kind = check.Unknown
		}
		keys = append(keys, s)
	}
	return keys
}

// check decides about one key.
func (l *Look) check(ctx context.Context, key ssh.PublicKey, s *Shown) *check.Verdict {
	name, port := l.target.HostKeyName()
	err := l.target.HostKeys.Check(ctx, name, port, nil, key)
	if err == nil {
		return nil
	}
	s.Kind, s.Why = check.Unknown, err.Error()
	v, _ := errors.AsType[*check.Verdict](err)
	if v != nil {
		s.Kind = v.Kind
	}
	return v
}

// policy returns where keys of the host are known.
func (l *Look) policy() *hostKeys {
	if k, ok := l.target.HostKeys.(*commanded); ok {
		return k.hostKeys
	}
	return l.target.HostKeys.(*hostKeys)
}

// Lines returns confirmed keys as lines of known_hosts files, hashed where ssh_config says so.
func Lines(all []*Look) (lines []string, err error) {
	for _, of := range byPolicy(all) {
		some, err := check.Lines(of.additions, of.hash)
		if err != nil {
			return nil, err
		}
		lines = append(lines, some...)
	}
	return lines, nil
}

// Record adds confirmed keys to the first known_hosts file of each host, and returns how many lines
// each file has got.
func Record(all []*Look) (added map[string]int, err error) {
	added = map[string]int{}
	for _, of := range byPolicy(all) {
		if of.file == "" {
			return added, fmt.Errorf("add the host key of %s: UserKnownHostsFile names no file", of.additions[0].Host)
		}
		n, err := of.record(of.additions)
		if added[of.file] += n; err != nil {
			return added, err
		}
	}
	return added, nil
}

// recording is what one policy records.
type recording struct {
	*hostKeys
	additions []check.Addition
}

// byPolicy sorts confirmed keys by policies, in the order of the hosts.
func byPolicy(all []*Look) (list []*recording) {
	for _, l := range all {
		if len(l.Confirmed) == 0 {
			continue
		}
		k := l.policy()
		i := slices.IndexFunc(list, func(r *recording) bool { return r.hostKeys == k })
		if i < 0 {
			i = len(list)
			list = append(list, &recording{hostKeys: k})
		}
		name, port := l.target.HostKeyName()
		list[i].additions = append(list[i].additions, check.Addition{Host: name, Port: port, Keys: l.Confirmed, Shown: l.shown})
	}
	return list
}

// record adds keys to the file.
func (k *hostKeys) record(all []check.Addition) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return check.Accept(k.index, k.file, all, k.hash)
}
