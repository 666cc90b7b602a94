package reach

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/knownhosts/check"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/pubkey"
)

// hostKeys is the policy about host keys over one set of known_hosts files.
type hostKeys struct {
	index     *index.Index
	rules     check.Rules
	allowed   []string // HostKeyAlgorithms
	acceptNew bool
	file      string // where new keys go
	hash      bool

	mu sync.Mutex // of writing
}

// lag is how long a check of known_hosts files is valid. Before a key is refused or recorded they
// are checked again.
const lag = 50 * time.Millisecond

// keysOf identifies a policy about host keys.
type keysOf struct {
	files, algorithms    string
	any, acceptNew, hash bool // any: of algorithms
}

// hostKeys returns the policy of a configuration, shared by all hosts with the same one.
func (e *Executor) hostKeys(c *conf.Resolved) *hostKeys {
	files := slices.Concat(c.Files(conf.UserKnownHostsFile), c.Files(conf.GlobalKnownHostsFile))
	accept := e.AcceptsNew(c)
	algorithms := e.Allowed(c, conf.HostKeyAlgorithms)
	key := keysOf{strings.Join(files, "\x00"), strings.Join(algorithms, ","), algorithms == nil, accept, c.Yes(conf.HashKnownHosts)}
	e.mu.Lock()
	defer e.mu.Unlock()
	k := e.keys[key]
	if k == nil {
		k = &hostKeys{index: index.Open(files...), rules: e.rules(algorithms), allowed: algorithms, acceptNew: accept, hash: c.Yes(conf.HashKnownHosts)}
		k.index.Lag = lag
		if user := c.Files(conf.UserKnownHostsFile); len(user) > 0 {
			k.file = user[0]
		}
		e.keys[key] = k
	}
	return k
}

// The first releases with other decisions about certificates.
var (
	patternPrincipals = conf.Version{Major: 10, Minor: 3}
	keysInside        = conf.Version{Major: 9, Minor: 8}
)

// rules returns the rules of the installed ssh for host keys, the strict ones if there is no ssh,
// under a list of HostKeyAlgorithms; nil is all algorithms.
func (e *Executor) rules(algorithms []string) check.Rules {
	return check.Rules{
		Patterns: func() bool {
			release, known := e.Release(context.Background()) // asking has a limit of its own
			return known && release.AtLeast(patternPrincipals)
		},
		Inside: func(keyType string) bool {
			if algorithms == nil || slices.ContainsFunc(algorithms, func(name string) bool { return signs(name) == keyType }) {
				return true
			}
			release, known := e.Release(context.Background()) // asking has a limit of its own
			return known && !release.AtLeast(keysInside)
		},
	}
}

// signs returns the type of the plain keys that sign by an algorithm.
func signs(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}

func (k *hostKeys) Algorithms(_ context.Context, name string, port int, preference []string) ([]string, error) {
	return check.Algorithms(k.index, name, port, preference), nil
}

// verdictClass translates the verdicts about known_hosts.
var verdictClass = map[check.Kind]fleet.Class{
	check.Unknown: fleet.HostKeyUnknown, check.Changed: fleet.HostKeyChanged, check.Revoked: fleet.HostKeyRevoked,
}

func (k *hostKeys) Check(_ context.Context, name string, port int, remote net.Addr, key ssh.PublicKey) error {
	return k.decide(k.index, name, port, remote, key)
}

// decide is Check by all that x knows.
func (k *hostKeys) decide(x *index.Index, name string, port int, remote net.Addr, key ssh.PublicKey) error {
	err := check.Key(x, name, port, remote, key, k.rules)
	if err != nil {
		x.Expire()
		err = check.Key(x, name, port, remote, key, k.rules)
	}
	v, _ := errors.AsType[*check.Verdict](err)
	if v != nil && v.Kind == check.Unknown && k.acceptNew && !v.CA {
		err = k.accept(name, port, key)
		v, _ = errors.AsType[*check.Verdict](err)
	}
	if err == nil {
		return nil
	}
	switch {
	case v != nil && slices.ContainsFunc(v.Lines, k.isForeign):
		text := "host key of " + name + " cannot be checked: it offered " + v.New + ", known is " + check.Joined(v.Lines)
		return &dial.Error{Class: fleet.HostKeyUnknown, Text: text, Hint: new(needsSSH).Hint(), Err: v, OnlySSH: true}
	case v != nil:
		return &dial.Error{Class: verdictClass[v.Kind], Text: v.What(), Hint: v.Hint(), Lacking: k.lacking(v), Err: v}
	}
	return &dial.Error{
		Class: fleet.HostKeyUnknown, Text: "new host key not accepted, it cannot be recorded: " + err.Error(),
		Hint: "name a file that can be written with -o UserKnownHostsFile=FILE", Err: err,
	}
}

// isForeign reports whether ssh might have made the server prove a known key, and the native engine
// lacks the type for that.
func (k *hostKeys) isForeign(known check.Known) bool {
	return known.Fingerprint == "" && slices.Contains(k.allowed, known.Type) && !slices.Contains(pubkey.Algorithms(), known.Type)
}

// lacking returns the types of certificates that ssh accepts and the native engine lacks, where a
// certificate would help. ssh records the key inside one that is not valid, if it may record keys.
func (k *hostKeys) lacking(v *check.Verdict) []string {
	if !v.CA || k.acceptNew {
		return nil
	}
	have := pubkey.Algorithms()
	return slices.DeleteFunc(slices.Clone(k.allowed), func(name string) bool { return !strings.HasSuffix(name, alg.CertSuffix) || slices.Contains(have, name) })
}

// accept records a new key. One that cannot be recorded is not accepted either: it would always be
// new.
func (k *hostKeys) accept(name string, port int, key ssh.PublicKey) error {
	if k.file == "" {
		return errors.New("UserKnownHostsFile names no file")
	}
	// Of no authority that we know: as in ssh, the key inside counts.
	_, err := k.record([]check.Addition{{Host: name, Port: port, Keys: []ssh.PublicKey{plain(key)}}})
	return err
}
