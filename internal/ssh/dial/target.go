// Package dial is the native SSH engine of run: it dials, checks the host key, logs in with agent,
// key files and certificates, goes through jump hosts, and runs one command, all in this process.
//
// It satisfies fleet.Executor. It reads no ssh_config and no known_hosts file: a Resolver returns
// the Target of a host, and the Target carries the HostKeys that decide about the server's key and
// the Prompter that answers questions. It never forwards the agent, and prints nothing.
package dial

import (
	"cmp"
	"context"
	"io"
	"net"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/line"
)

// Target is one server with all its settings. The zero value of a field is its default. A Target
// must not be changed after its first use; hosts may share slices and HostKeys.
type Target struct {
	Name     string // for people, "" = HostName
	HostName string // name or address to dial; not empty
	Port     int    // 0 = 22
	User     string // not empty

	// HostKeyAlias is the name for HostKeys instead of HostName and Port.
	HostKeyAlias string
	HostKeys     HostKeys // must not be nil

	Family      Family
	BindAddress string // local address, "" = any

	// ConnectTimeout bounds TCP, key exchange, login and the start of the command together; 0 is
	// fleet.ConnectTimeout.
	ConnectTimeout time.Duration
	// AliveInterval is the silence after which the server gets a keepalive request; 0 is
	// fleet.AliveInterval, negative is never. AliveCountMax unanswered ones end the connection; 0
	// is 3.
	AliveInterval time.Duration
	AliveCountMax int

	// Algorithm lists in order of preference; nil is all secure ones. Names that package transport
	// lacks are left out.
	KeyExchanges, Ciphers, MACs, HostKeyAlgorithms, PubkeyAlgorithms []string
	// KeepHostKeyOrder offers HostKeyAlgorithms in their order; otherwise HostKeys orders them.
	KeepHostKeyOrder bool
	// MinRSABits is the shortest accepted RSA key, of the server and of ours (ssh_config(5)
	// RequiredRSASize); 0 is 1024.
	MinRSABits int

	Identity Identity
	// PasswordMethods are keyboard-interactive and password as far as they are allowed, the
	// preferred one first. Prompter answers the server's questions by them; nil gives them up. If
	// it is a Person, each of them may be tried Prompts times, 0 is once. A jump host never has a
	// password that is known: that is for the host that a command runs on.
	PasswordMethods []string
	Prompter        Prompter
	Prompts         int
	Remedy          string // where nobody can answer, for hints
	// Local runs the LocalCommand of ssh_config on this machine, after the login and before a
	// command leaves; nil is none. Subsystems have none, as with scp.
	Local func(ctx context.Context, stdout, stderr io.Writer)
	Env   []string // NAME=value, asked of the server without waiting
	Jump  *Target  // dial through this server; it may have a Jump of its own
	// Shared returns a connection to a jump host that somebody else has made; nil, or a nil result:
	// there is none.
	Shared func(context.Context) line.Line
}

// Identity selects the keys to log in with.
type Identity struct {
	Files        []string // private keys; missing ones are left out silently
	Certificates []string // certificate files; without any, KEY-cert.pub of each of Files
	Only         bool     // of the agent's keys, only those of Files
	Batch        bool     // nobody is asked for a passphrase
	// Agent is the socket of the agent; "" is none.
	Agent string
}

// Family restricts the addresses.
type Family uint8

// The address families.
const (
	anyFamily Family = iota
	IPv4
	IPv6
)

// HostKeys decides about server keys. Methods are called concurrently; port is 0 for a
// HostKeyAlias.
type HostKeys interface {
	// Algorithms returns preference (nil: its own default) in the order in which it is to be
	// offered to the host. An error is one as of Check.
	Algorithms(ctx context.Context, name string, port int, preference []string) ([]string, error)
	// Check returns nil when key may be trusted for the host, and otherwise an *Error of class
	// HostKeyUnknown, HostKeyChanged, HostKeyRevoked or HostKeyWeak. remote is the dialed address.
	Check(ctx context.Context, name string, port int, remote net.Addr, key ssh.PublicKey) error
}

// Resolver finds out how to reach a host.
type Resolver interface {
	Target(ctx context.Context, h host.Host) (*Target, error)
}

// defaultAliveCountMax is as in ssh_config(5).
const defaultAliveCountMax = 3

func (t *Target) port() int { return cmp.Or(t.Port, knownhosts.DefaultPort) }

func (t *Target) addr() string { return net.JoinHostPort(t.HostName, strconv.Itoa(t.port())) }

// account is whom a person answers for.
func (t *Target) account() string { return t.User + "@" + cmp.Or(t.Name, t.HostName) }

// HostKeyName returns under which name and port HostKeys know the server.
func (t *Target) HostKeyName() (name string, port int) {
	if t.HostKeyAlias != "" {
		return t.HostKeyAlias, 0
	}
	return t.HostName, t.port()
}

func (t *Target) connectTimeout() time.Duration {
	return cmp.Or(t.ConnectTimeout, fleet.ConnectTimeout)
}

// minRSABits returns the limit; its default is also OpenSSH's least value (sshkey.h).
func (t *Target) minRSABits() int {
	const least = 1024
	return max(t.MinRSABits, least)
}

func (t *Target) alive() (every time.Duration, count int) {
	return cmp.Or(t.AliveInterval, fleet.AliveInterval), cmp.Or(t.AliveCountMax, defaultAliveCountMax)
}

// jumpKey identifies a jump connection in the pool: everything that makes it another connection.
type jumpKey struct {
	addr, user, alias, agent string
	via                      string
}

func (t *Target) jumpKey() jumpKey {
	k := jumpKey{addr: t.addr(), user: t.User, alias: t.HostKeyAlias, agent: t.Identity.Agent}
	for j := t.Jump; j != nil; j = j.Jump {
		k.via += j.User + "@" + j.addr() + ","
	}
	return k
}
