package record

import "time"

// LoginKind is one way to log in. The first of a file is the plain one; each other one differs in
// one thing from the other logins of its factor.
type LoginKind struct {
	Factor     string `json:"factor,omitempty"` // the compared property; "" of the plain login
	Level      string `json:"level"`
	Like       int    `json:"like,omitempty"`        // ID of the kind whose logins count for this one, too; 0: its own
	Conditions string `json:"conditions,omitempty"`  // shared by all kinds but the plain one
	RoundTrips int    `json:"round_trips,omitempty"` // TCP's included; 0: not counted
}

// Phase is a part of a login. The next begins where it ends.
type Phase string

// The phases, in order.
const (
	PhaseStart    Phase = "start"   // the program, its configuration, the name of the host
	PhaseTCP      Phase = "tcp"     // connecting, or the start of a ProxyCommand
	PhaseVersion  Phase = "version" // until the server's version line
	PhaseKexInit  Phase = "kexinit" // until the server's list of algorithms
	PhaseKex      Phase = "kex"     // until its half of the key exchange
	PhaseHostKey  Phase = "hostkey" // deciding about its key: known_hosts
	PhaseNewKeys  Phase = "newkeys" // until its new keys
	PhaseService  Phase = "service" // until it accepts the service
	PhaseAuthNone Phase = "none"    // the first request, which only asks for methods
	PhaseQuery    Phase = "query"   // offering keys until one would do
	PhaseSign     Phase = "sign"    // the signature, until the login has succeeded
	PhaseChannel  Phase = "channel" // opening a session
	PhaseExec     Phase = "exec"    // until the server starts the command
	PhaseCommand  Phase = "command" // the command, start-up files of the shell included
	PhaseClose    Phase = "close"   // until the program ends
)

// AllPhases lists the phases, in order.
var AllPhases = []Phase{
	PhaseStart, PhaseTCP, PhaseVersion, PhaseKexInit, PhaseKex, PhaseHostKey, PhaseNewKeys, PhaseService, PhaseAuthNone, PhaseQuery, PhaseSign, PhaseChannel, PhaseExec, PhaseCommand, PhaseClose,
}

// LoginPhase is the duration of one phase.
type LoginPhase struct {
	Phase  Phase         `json:"phase"`
	WallNS time.Duration `json:"wall_ns"`
	// Of a survey: for BusyNS of it this machine was busy, and a phase that is Unended is the last
	// one.
	BusyNS  time.Duration `json:"busy_ns,omitempty"`
	Unended bool          `json:"unended,omitempty"`
}

// LoginStall is a wait that no computation explains.
type LoginStall struct {
	Side   string        `json:"side"`  // "client" or "server", whose packet waited
	AtNS   time.Duration `json:"at_ns"` // since the first packet
	WallNS time.Duration `json:"wall_ns"`
	Why    string        `json:"why"`
}
