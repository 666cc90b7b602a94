package sshconf

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/wildcard"
)

// HostName is the name or address to connect to.
func (r *Resolved) HostName() string { return r.word(HostName) }

// Port is the TCP port to connect to, 1 to 65535.
func (r *Resolved) Port() int { return r.conn.port }

// User is the user to log in as.
func (r *Resolved) User() string { return r.word(User) }

// AddressFamily is "any", "inet" or "inet6".
func (r *Resolved) AddressFamily() string { return r.word(AddressFamily) }

// BindAddress is the local address to connect from, "" = any.
func (r *Resolved) BindAddress() string { return r.word(BindAddress) }

// ConnectTimeout limits the connecting, 0 = the limit of the system.
func (r *Resolved) ConnectTimeout() time.Duration { return r.duration(ConnectTimeout) }

// ProxyJump lists the hosts to go through, the first to connect to first. A
// user or port that is not given is that of the hop's own configuration.
func (r *Resolved) ProxyJump() []Jump { return slices.Clone(r.jumps) }

// ProxyCommand is the shell command to use as the connection, with its tokens
// expanded, "" = none.
func (r *Resolved) ProxyCommand() (string, error) {
	return expand(r.word(ProxyCommand), r.conn.proxyToken, nil)
}

// IdentityFiles are the files of private keys to try, in order, expanded.
// Files that were not given by the user need not exist: see IsSet.
func (r *Resolved) IdentityFiles() ([]string, error) { return r.paths(IdentityFile) }

// CertificateFiles are the user certificates to offer, expanded. If there are
// none, ssh looks for KEY-cert.pub beside each identity file.
func (r *Resolved) CertificateFiles() ([]string, error) { return r.paths(CertificateFile) }

// IdentitiesOnly restricts authentication to the IdentityFiles, even if the
// agent has other keys.
func (r *Resolved) IdentitiesOnly() bool { return r.yes(IdentitiesOnly) }

// IdentityAgent is the path of the agent's socket, "" = use no agent.
func (r *Resolved) IdentityAgent() string {
	env := r.config.system.getenv
	switch path := r.word(IdentityAgent); {
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

// pubkeyAuthentication reports whether keys may be used to log in.
func (r *Resolved) pubkeyAuthentication() bool {
	return r.word(PubkeyAuthentication) != "false" && r.word(PubkeyAuthentication) != "no"
}

// batchMode forbids to ask the user for anything.
func (r *Resolved) batchMode() bool { return r.yes(BatchMode) }

// RequiredRSASize is the smallest RSA key to accept, in bits.
func (r *Resolved) RequiredRSASize() int { return r.number(RequiredRSASize) }

// UserKnownHostsFiles are the files of the user's known host keys, expanded.
// New keys go into the first.
func (r *Resolved) UserKnownHostsFiles() []string { return r.files(UserKnownHostsFile) }

// GlobalKnownHostsFiles are the system's files of known host keys.
func (r *Resolved) GlobalKnownHostsFiles() []string { return r.files(GlobalKnownHostsFile) }

// HostKeyAlias is the name to look host keys up by, without a port, in lower
// case. "" = by host name and port.
func (r *Resolved) HostKeyAlias() string { return r.word(HostKeyAlias) }

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
	switch r.word(StrictHostKeyChecking) {
	case "true", "yes":
		return Strict
	case "accept-new":
		return AcceptNew
	case "false", "no", "off":
		return Lax
	}
	return Ask
}

// HashKnownHosts says to hash host names that are added to known_hosts.
func (r *Resolved) HashKnownHosts() bool { return r.yes(HashKnownHosts) }

// UpdateHostKeys says to learn further keys of a host after the login.
func (r *Resolved) UpdateHostKeys() bool { return r.yes(UpdateHostKeys) }

// Ciphers are the ciphers to offer, best first. Without an installed ssh and
// without a setting this list and the others of its kind are empty.
func (r *Resolved) Ciphers() []string { return r.list(Ciphers) }

// MACs are the message authentication codes to offer, best first.
func (r *Resolved) MACs() []string { return r.list(MACs) }

// KexAlgorithms are the key exchanges to offer, best first.
func (r *Resolved) KexAlgorithms() []string { return r.list(KexAlgorithms) }

// HostKeyAlgorithms are the host key algorithms to offer, best first.
func (r *Resolved) HostKeyAlgorithms() []string { return r.list(HostKeyAlgorithms) }

// KeepsHostKeyOrder reports whether they are to be offered as they stand. Else
// those of known keys come first: ssh does that where the list is not set, or
// adds to its own (+) or takes away from it (-) (sshconnect2.c:ssh_kex2).
func (r *Resolved) KeepsHostKeyOrder() bool { return r.ordered }

// PubkeyAcceptedAlgorithms are the signature algorithms to log in with.
func (r *Resolved) PubkeyAcceptedAlgorithms() []string { return r.list(PubkeyAcceptedAlgorithms) }

// RekeyLimit is the number of bytes after which to exchange keys again, and
// the time; 0 = the default of the cipher, and no limit of time.
func (r *Resolved) RekeyLimit() (bytes int64, interval time.Duration) {
	bytes, _ = strconv.ParseInt(r.word(RekeyLimit), 10, 64)
	return bytes, r.duration(rekeyInterval)
}

// Compression asks for zlib.
func (r *Resolved) Compression() bool { return r.yes(Compression) }

// ServerAliveInterval is how long to wait for data before the server is asked
// for a sign of life, 0 = never.
func (r *Resolved) ServerAliveInterval() time.Duration { return r.duration(ServerAliveInterval) }

// ServerAliveCountMax is how many such questions may stay without an answer.
func (r *Resolved) ServerAliveCountMax() int { return r.number(ServerAliveCountMax) }

// SendEnv are patterns of variables to pass on if they are set.
func (r *Resolved) SendEnv() []string {
	var names []string
	for _, v := range r.all(SendEnv) {
		names = append(names, v.Args...)
	}
	return names
}

// Environment returns the variables to send, each as NAME=value: those of
// environ that SendEnv chooses, and those of SetEnv, which win.
func (r *Resolved) Environment(environ []string) []string {
	var out []string
	set := r.list(SetEnv)
	for _, variable := range environ {
		name, _, _ := strings.Cut(variable, "=")
		sent := slices.ContainsFunc(r.SendEnv(), func(p string) bool { return wildcard.Match(name, p) })
		fixed := slices.ContainsFunc(set, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if sent && !fixed {
			out = append(out, variable)
		}
	}
	return append(out, set...)
}

// RemoteCommand is the command to run when none is given, expanded.
func (r *Resolved) RemoteCommand() string { return r.word(RemoteCommand) }

// RefusesConnection tells whether the files forbid to connect to the host.
func (r *Resolved) RefusesConnection() bool { return r.word(RefuseConnection) != "" }

// ControlPath is the socket of a shared connection, expanded, "" = none.
func (r *Resolved) ControlPath() string { return r.word(ControlPath) }
