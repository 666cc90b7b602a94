package conf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/base/wildcard"
)

// HostName is the name or address to connect to.
func (r *Resolved) HostName() string { return r.Word(HostName) }

// Port is the TCP port to connect to, 1 to 65535.
func (r *Resolved) Port() int { return r.conn.port }

// User is the user to log in as.
func (r *Resolved) User() string { return r.Word(User) }

// ProxyJump lists the hosts to go through, the first to connect to first. A user or port that is
// not given is that of the hop's own configuration.
func (r *Resolved) ProxyJump() []host.Endpoint { return slices.Clone(r.jumps) }

// ProxyCommand is the shell command to use as the connection, with its tokens expanded, "" = none.
func (r *Resolved) ProxyCommand() (string, error) {
	return expand(r.Word(ProxyCommand), r.conn.proxyToken, nil)
}

// LocalCommand returns the shell command to run on this machine after a login, with its tokens
// expanded, "" for none. As with ssh, a wrong token is an error even if it is not permitted.
func (r *Resolved) LocalCommand() (string, error) {
	v, _ := r.Get(LocalCommand)
	text, err := expand(v.word(), r.conn.with(func(t byte) (string, bool) { return "NONE", t == 'T' }), nil)
	if err != nil {
		return "", wrapError(v.Origin, fmt.Errorf("%s: %w", LocalCommand, err))
	}
	if !r.Yes(PermitLocalCommand) {
		return "", nil
	}
	return text, nil
}

// KnownHostsCommand returns the program that knows host keys, and its expanded arguments, nil for
// none (sshconnect.c:load_hostkeys_command). tokens has the tokens of this keyword alone.
func (r *Resolved) KnownHostsCommand(tokens func(byte) (text string, ok bool)) ([]string, error) {
	argv, err := splitWords(r.Word(KnownHostsCommand), false)
	if err != nil || len(argv) == 0 {
		return nil, err
	}
	args, err := expandAll(argv[1:], func(arg string) (string, error) {
		return expand(arg, r.conn.with(tokens), r.conn.system.Getenv)
	})
	return append(argv[:1:1], args...), err
}

// FingerprintHash returns the hash of fingerprints, "" for the usual one.
func (r *Resolved) FingerprintHash() string { return r.Word(byName["fingerprinthash"]) }

// IdentityAgent is the path of the agent's socket, "" = use no agent.
func (r *Resolved) IdentityAgent() string {
	env := r.config.system.getenv
	switch path := r.Word(IdentityAgent); {
	case path == "" || path == "SSH_AUTH_SOCK":
		socket, _ := env("SSH_AUTH_SOCK")
		return socket
	case path == "none":
		return ""
	case path[0] == '$' && !strings.HasPrefix(path, "${"):
		socket, _ := env(path[1:])
		return socket
	default:
		return path
	}
}

// Strictness is a value of StrictHostKeyChecking.
type Strictness uint8

// The values of StrictHostKeyChecking. The zero value is none of them.
const (
	_         Strictness = iota
	Ask                  // ask about unknown keys, refuse changed ones
	Strict               // refuse unknown and changed keys
	AcceptNew            // add unknown keys, refuse changed ones
	Lax                  // add unknown keys, connect in spite of changed ones
)

// StrictHostKeyChecking says what to do about unknown and changed host keys.
func (r *Resolved) StrictHostKeyChecking() Strictness {
	switch r.Word(StrictHostKeyChecking) {
	case "true", "yes":
		return Strict
	case "accept-new":
		return AcceptNew
	case "false", "no", "off":
		return Lax
	}
	return Ask
}

// KeepsHostKeyOrder reports whether the algorithms are offered in their order. Otherwise those of
// known keys come first: ssh does that where the list is not set, or adds to its own (+) or removes
// from it (-) (sshconnect2.c:ssh_kex2).
func (r *Resolved) KeepsHostKeyOrder() bool { return r.ordered }

// Environment returns the variables to send, each as NAME=value: those of environ that SendEnv
// selects, and those of SetEnv, which win.
func (r *Resolved) Environment(environ []string) []string {
	var out []string
	patterns, set := r.Sendable(), r.List(SetEnv)
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		sent := slices.ContainsFunc(patterns, func(p string) bool { return wildcard.Match(name, p) })
		fixed := slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if sent && !fixed {
			out = append(out, variable)
		}
	}
	return append(out, set...)
}

// Sendable returns the patterns of SendEnv.
func (r *Resolved) Sendable() (patterns []string) {
	for _, v := range r.all(SendEnv) {
		patterns = append(patterns, v.Args...)
	}
	return patterns
}

// ControlPath returns the socket of a master of the host; where ControlPath is not set, its own
// file in directory. It is "" if there is none to use. A name without a setting is the same for all
// releases of ssh. Behind a ProxyCommand an address may be that of another host.
func (r *Resolved) ControlPath(directory string) string {
	switch {
	case r.unshared || r.Word(RefuseConnection) != "":
		return ""
	case r.Word(ControlPath) != "" || directory == "" || r.Word(ProxyCommand) != "":
		return r.Word(ControlPath)
	}
	of := r.conn
	of.version = Version{}
	return filepath.Join(directory, of.hash())
}
