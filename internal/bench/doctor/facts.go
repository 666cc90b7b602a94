//go:build linux

package doctor

import (
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// Facts are the measurements. Facts that are unknown, or were not asked for, have their zero value:
// then N is 0.
type Facts struct {
	openssh.Destination      // as the user types it
	Own                 bool // the server is our own private one, not a user's host

	KnownAs string // in known_hosts files
	Port    int
	Route   string // to the host, as ip route get prints it; "" where that is unknown
	Jumps   []string

	Logins     Logins
	Busy       float64 // share of this machine's CPU time in use during the logins; 0: unknown
	Refusal    *Refusal
	Stuck      *Stuck
	NoCommands *NoCommands
	Master     *Master
	Sharing    Sharing
	Server     *Server

	Asks       []Setting // sources of keys that ssh asks besides the files
	KeyFiles   []string  // the user's files of host keys
	updates    bool      // UpdateHostKeys
	KnownHosts []KnownHosts
	Exchange   *Exchange
	Transfers  Transfers
}

// Setting is a setting of the configuration with its place: FILE:LINE, unless ssh hides it.
type Setting struct {
	Keyword      conf.Keyword
	Value, Where string
}

// KnownHosts is a large file of host keys that is read at every login.
type KnownHosts struct {
	File          string
	Others        []string // the user's files besides
	Lines, Hashed int
	Extra         stats.Interval // processor time of a login that is due to its size
}

// Transfers are short uploads over their own connections.
type Transfers struct {
	Present Transfer
	// Plain is without compression, Other with another cipher (Cipher), Twice two connections at
	// once.
	Plain, Other, Twice Transfer
	Cipher              string
}

// Transfer is the result of one upload: without a rate it was not measured.
type Transfer struct {
	record.Evidence
	CPUPerByte float64 // ns of ssh
}

// Logins are figures over all logins.
type Logins struct {
	Whole     stats.Interval
	RoundTrip stats.Interval // of TCP; of a request where a ProxyCommand hides it
	Address   string         // that ssh connected to; "" behind a proxy
	Lookup    stats.Interval // of the address
	Failed    []Attempt      // addresses before that one
	Commands  []Command      // of Match exec
	GSSAPI    stats.Interval // trying it without success
	Keys      Keys
	TCP       stats.Interval // opening the connection
	Proxy     string         // the ProxyCommand that ssh ran instead
	Version   stats.Interval // until the server's version line
	Exchange  stats.Interval // the key exchange, without looking up known keys
	HostKey   stats.Interval // that, before the exchange and in it
	Service   stats.Interval // from our new keys to the accepted service
	Request   stats.Interval // the first request for a login
	Query     stats.Interval // until the server would take the key
	Signing   stats.Interval // by this side
	Entry     stats.Interval // from the signature sent to being let in
	Session   stats.Interval // from being let in to an open session
	Exec      stats.Interval // asking for the command
	Command   stats.Interval // running true
	Kex       string         // as negotiated
	Cipher    string
	Zipped    bool // compression was negotiated
	ClientCPU stats.Interval
	Offered   alg.Offer // by the server
	User      string    // on the host
}

// Cut reports whether logins take longer than the measured time.
func (l Logins) Cut() bool {
	return slices.ContainsFunc(l.Failed, func(a Attempt) bool { return a.Cut })
}

// Attempt is an address that ssh could not connect to.
type Attempt struct {
	Address, Why string
	Took         stats.Interval
	Cut          bool // we waited no longer; ssh by itself does
}

// Command is a command of Match exec.
type Command struct {
	Text string
	File string // "" where ssh does not say
	Line int
	Took stats.Interval
}

// Keys are the offered keys.
type Keys struct {
	Vain        []string // keys that the server refused
	Took        stats.Interval
	Accepted    string // its file or comment
	Fingerprint string // of it
	FromAgent   bool
}

// Refusal is a server that hung up before the login, after some logins.
type Refusal struct {
	Said    string
	After   int  // logins that worked
	Startup bool // it named MaxStartups
	Penalty bool // it named PerSourcePenalties
	TooMany bool // keys
}

// Stuck is a login that never ended.
type Stuck struct {
	During login.Phase
	Signed bool // the signature was sent
	After  time.Duration
	Got    alg.Suite // as negotiated; empty if it never was
	Others []string  // key exchanges that both sides have, or ours if theirs never came
}

// NoCommands is an account that accepts logins, and runs no commands.
type NoCommands struct {
	Status int
	Said   string
}

// MasterState is the state of a ControlMaster's socket.
type MasterState string

// The states.
const (
	Live MasterState = "live"
	Dead MasterState = "dead" // nobody listens
	Hung MasterState = "hung" // somebody listens and does not answer
)

// Master is the socket at ControlPath, or where sshpace looks for one where that is not set.
type Master struct {
	Path   string
	Unset  bool // ssh does not know it: ControlPath is not set
	State  MasterState
	PID    int           // 0: not known
	Keep   bool          // it is sshpace keep
	Age    time.Duration // of its connection
	Waited time.Duration
	// Old are the groups of sessions over it, if a new login has others; New are those.
	Old, New []string
}

// Sharing is the configuration of shared connections, and the gain of one.
type Sharing struct {
	Master, Persist bool           // ControlMaster, ControlPersist
	Session         stats.Interval // true over the master that lives, or else over one of our own
}

// Server holds the answers of a shell on the host.
type Server struct {
	Client  string         // our address, as the server sees it
	Shell   string         // the login shell
	Reverse stats.Interval // looking our address up, there
	Account stats.Interval // looking the user up, there
	Motd    []string       // scripts that make the message of the day
	Greeted stats.Interval // running them, there; asked where sessions are slow
	Started stats.Interval // time to start the login shell once more, there; asked where commands are slow
	// Settings are sshd's, by their names in lower case, as far as the account may see them.
	Settings map[string]string
	Modules  map[string][]string // of PAM, by account and session: pam_NAME.so and its arguments
	Wrapped  bool                // hosts.allow or hosts.deny has rules (hosts_access(5))
	Forced   bool                // a forced command replaces every requested one
	RC       string              // sshrc or ~/.ssh/rc, which sshd runs before a command; "" for none
	Groups   []string
}
