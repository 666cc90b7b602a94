// Package record is the language that the parts of a measurement share: plan (Trial), outcome
// (Sample), conditions (Campaign, Environment), and remarks (Finding). It also reads and writes
// them as a record file. It measures nothing, and it has no place for credentials: a target is a
// label.
package record

import (
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
)

// FormatVersion is the version of the record format. Readers refuse newer files; fields may be
// added without a new version. oldest is the first version that is still read.
const (
	FormatVersion = 3
	oldest        = 2
)

// Workload is the use that a trial makes of its connection.
type Workload string

// The workloads.
const (
	Login   Workload = "login"   // connect, authenticate, run a command that does nothing
	Copy    Workload = "copy"    // move exactly SizeBytes, timed as a whole process
	Sitting Workload = "sitting" // stay open together with others and move data in slices, in turn
)

// Direction is the direction of the payload, seen from the client.
type Direction string

// The directions.
const (
	Upload   Direction = "upload"
	Download Direction = "download"
)

// Engine is the SSH client that a run measures. "" for an imported log without SSH.
type Engine string

// The engines.
const (
	EngineOpenSSH Engine = "openssh" // the installed ssh
	EngineNative  Engine = "native"  // the built-in client
)

// ServerKind is the SSH server that a run measures. "" in imported files.
type ServerKind string

// The kinds of server.
const (
	ServerOpenSSH ServerKind = "openssh" // the installed sshd, started for the run on loopback
	ServerNative  ServerKind = "native"  // the built-in server, started for the run on loopback
	ServerRemote  ServerKind = "remote"  // whatever answers on another machine
)

// Role is the purpose of a trial in the plan.
type Role string

// The roles. The zero value is an ordinary cell.
const (
	RoleCell      Role = ""
	RoleReference Role = "reference" // the reference cell that is measured in every round
	RoleControl   Role = "control"   // one half of a hidden A/A pair: Pair says which
	RoleHoldout   Role = "holdout"   // measured only to check predictions, never fitted
	RoleOverhead  Role = "overhead"  // a copy of one byte: the cost of a copy beyond login and transfer
)

// Loopback is the target of measurements on our own servers.
const Loopback = "loopback"

// Campaign describes one run of the tool: the first record of a file.
type Campaign struct {
	Format     int              `json:"format"`            // FormatVersion
	Tool       string           `json:"tool"`              // version of sshpace
	Command    string           `json:"command,omitempty"` // of sshpace, which measured this; "" for an imported log
	Started    time.Time        `json:"started"`
	Seed       uint64           `json:"seed"`
	Target     string           `json:"target"` // label: Loopback or the host as the user named it
	Engine     Engine           `json:"engine"` // of the client
	Server     ServerKind       `json:"server"`
	Directions []Direction      `json:"directions"`
	Data       string           `json:"data"` // "zero" or "random"; "" if unknown
	BudgetNS   time.Duration    `json:"budget_ns,omitempty"`
	Precision  float64          `json:"precision_pct,omitempty"`
	Rounds     int              `json:"rounds,omitempty"`     // requested number; a round of a sitting counts several of its own
	SizeBytes  unit.Bytes       `json:"size_bytes,omitempty"` // exhaustive runs: bytes of each copy
	Policy     string           `json:"policy,omitempty"`
	All        bool             `json:"all,omitempty"`      // on a host: ciphers outside the policy are compared at once, too
	Imported   string           `json:"imported,omitempty"` // formats of the log that this file was made from; "" if sshpace measured it
	Offer      alg.Offer        `json:"offer"`              // algorithms that both sides share and the user selected
	Shared     alg.Offer        `json:"shared,omitzero"`    // algorithms that both sides share, before any selection; empty if unknown
	Present    alg.Suite        `json:"present,omitzero"`   // suite that ssh and this server negotiate by default; empty if unknown
	Combos     alg.Combinations `json:"combinations"`
	// Asked holds the values of flags, by their names: where transfer methods or logins are
	// measured, all that resuming the run needs; otherwise the given ssh_config.
	Asked map[string][]string `json:"asked,omitempty"`
}

// Environment describes the machines, as far as they could be seen. A field that could not be read
// is empty.
type Environment struct {
	OS            string        `json:"os"`
	Kernel        string        `json:"kernel,omitempty"`
	Arch          string        `json:"arch"`
	CPU           string        `json:"cpu,omitempty"`
	CPUFeatures   []string      `json:"cpu_features,omitempty"` // that matter to SSH: aes, vaes, pclmulqdq, sha_ni, avx2, asimd...
	Cores         int           `json:"cores"`                  // usable by this process
	CPUQuota      float64       `json:"cpu_quota_cores,omitempty"`
	Governor      string        `json:"governor,omitempty"`
	Hypervisor    string        `json:"hypervisor,omitempty"`
	MemoryBytes   unit.Bytes    `json:"memory_bytes,omitempty"`
	StealPct      float64       `json:"steal_pct"`       // at the start of the run
	LoadAverage   float64       `json:"load_average_1m"` // at the start of the run
	TickNS        time.Duration `json:"cpu_clock_ns"`    // resolution of the CPU clock used for slices
	CPUClock      string        `json:"cpu_clock"`       // "perf task-clock", "process clock" or "none"
	Client        string        `json:"client"`          // version line of the client
	ClientPath    string        `json:"client_path"`     // absolute path of the client binary
	Server        string        `json:"server"`          // version of the server
	ServerPath    string        `json:"server_path,omitempty"`
	Crypto        string        `json:"crypto,omitempty"` // crypto library, such as "OpenSSL 3.0.19 27 Jan 2026"
	ServerBanner  string        `json:"server_banner,omitempty"`
	ServerMachine string        `json:"server_machine,omitempty"` // of a remote host: system and CPU
	AddressCheck  string        `json:"address_check,omitempty"`  // of a remote host: 16 bits of a hash of its address and port
	RoundTripNS   time.Duration `json:"round_trip_ns,omitempty"`  // to a remote host, through SSH, at the start of the run; 0: unknown
	Limits        []string      `json:"limits,omitempty"`         // limits of the observation on this machine or host
	StrictKex     *bool         `json:"strict_kex,omitempty"`     // both sides do strict key exchange, the remedy for Terrapin (CVE-2023-48795); nil if unknown
}

// Trial is one connection to make.
type Trial struct {
	ID        int        `json:"id"` // counts from 1 in a file
	Target    string     `json:"target"`
	Want      alg.Suite  `json:"want"`
	Workload  Workload   `json:"workload"`
	Direction Direction  `json:"direction,omitempty"`
	SizeBytes unit.Bytes `json:"size_bytes,omitempty"` // for Copy: the exact amount
	Round     int        `json:"round"`                // of a login or copy, from 1; 0: a sitting's slices have theirs
	Role      Role       `json:"role,omitempty"`
	Pair      int        `json:"pair,omitempty"` // trials of one A/A pair share it, from 1; in a sitting only the second is a RoleControl
	// Shares is the trial whose connection this trial of a sitting uses, for the other direction;
	// 0: it has its own.
	Shares int `json:"shares,omitempty"`
	// Offered is the suite to put on the wire if it is not Want: a control asks for the same
	// computation under another name, such as an AEAD cipher with a MAC that is ignored.
	Offered alg.Suite `json:"offered,omitzero"`
}

// Asked returns the suite that the trial puts on the wire.
func (t Trial) Asked() alg.Suite {
	if t.Offered != (alg.Suite{}) {
		return t.Offered
	}
	return t.Want
}

// Cell returns the cell that the trial measures.
func (t Trial) Cell() Cell { return CellOf(t.Want, t.Direction) }

// Cell is one distinct computation per byte in one direction. Aliases have one cell.
type Cell struct {
	Suite     alg.Suite // cipher and MAC, canonical names
	Direction Direction
}

// CellOf returns the cell of the suite's transfers.
func CellOf(s alg.Suite, d Direction) Cell { return Cell{s.Computation(), d} }

// Outcome is the end of a trial. A failed trial is data, not an error.
type Outcome string

// The outcomes.
const (
	OK         Outcome = "ok"
	Refused    Outcome = "refused"    // the server closed or refused the connection before its version line
	Denied     Outcome = "denied"     // the login failed
	HostKey    Outcome = "hostkey"    // unknown or changed host key
	TimedOut   Outcome = "timeout"    // a phase took longer than its deadline
	Mismatched Outcome = "mismatched" // another suite than the wanted one, or no common algorithm
	Broken     Outcome = "broken"     // the connection or a process ended in the middle
	Aborted    Outcome = "aborted"    // stopped by the user
	Unresolved Outcome = "unresolved" // the host name does not resolve
)

// Sample is the outcome of one trial.
type Sample struct {
	Trial     int           `json:"trial"` // Trial.ID
	Got       alg.Suite     `json:"got"`   // negotiated, both directions alike unless Outcome says mismatched
	Start     time.Time     `json:"start"`
	ElapsedNS time.Duration `json:"elapsed_ns"` // wall time of the whole trial
	Outcome   Outcome       `json:"outcome"`
	Detail    string        `json:"detail,omitempty"` // what went wrong, in one line
	Bytes     unit.Bytes    `json:"bytes,omitempty"`  // Copy: bytes that arrived
	Rekeys    int           `json:"rekeys,omitempty"` // key exchanges after the first one
	// ClientCPUNS and ServerCPUNS are the CPU time of a Copy, login included; nil if unknown.
	ClientCPUNS *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS *time.Duration `json:"server_cpu_ns,omitempty"`
	Phases      *Phases        `json:"login,omitempty"`
	// ElapsedLoNS and ElapsedHiNS bound ElapsedNS where it was read from a coarse clock, such as
	// the whole seconds of an imported log; 0 where it is exact.
	ElapsedLoNS time.Duration `json:"elapsed_lo_ns,omitempty"`
	ElapsedHiNS time.Duration `json:"elapsed_hi_ns,omitempty"`
}

// Result is a trial with its sample.
type Result struct {
	Trial  Trial
	Sample Sample
}

// Usable reports whether a result carries the numbers that its trial is for. Everything else is a
// failed trial.
func (r Result) Usable() bool {
	if r.Sample.Outcome != OK {
		return false
	}
	switch r.Trial.Workload {
	case Sitting:
		return true // its transfer is in the slices
	case Login:
		return r.Sample.Phases != nil && r.Sample.Phases.LoginNS > 0
	case Copy:
		return r.Sample.Bytes > 0 && r.Sample.ElapsedNS > 0
	}
	return false
}

// Slices are the data that connections that are open at the same time moved in turn during about a
// second, in order. Their trials come before them; their samples (negotiated suite, end) may come
// later.
type Slices struct {
	Sitting int       `json:"sitting"` // connections that were open together share it; counts from 1 in a file
	Start   time.Time `json:"start"`
	Slices  []Slice   `json:"slices"`
	// Other work of this machine since the record before, while nothing but slices happened.
	SpanNS       time.Duration  `json:"span_ns,omitempty"`
	ForeignCPUNS *time.Duration `json:"foreign_cpu_ns,omitempty"` // busy time of all cores by other processes; nil: unknown
}

// Slice is a few milliseconds in which one connection, and no other, moved data. A nil figure could
// not be read. CPU times and bytes run from the end of the connection's slice before, so that none
// of its work is lost.
type Slice struct {
	Trial        int            `json:"trial"`
	Round        int            `json:"round"`    // every round visits connections in a new random order
	StartNS      time.Duration  `json:"start_ns"` // after Slices.Start
	WallNS       time.Duration  `json:"wall_ns"`
	Bytes        unit.Bytes     `json:"bytes"` // payload, all of which arrived
	ClientCPUNS  *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS  *time.Duration `json:"server_cpu_ns,omitempty"`
	HarnessCPUNS time.Duration  `json:"harness_cpu_ns,omitempty"` // source and sink
	Long         bool           `json:"long,omitempty"`           // several times as long as others: measures throughput
	Steady       *Steady        `json:"steady,omitempty"`         // for throughput
}

// Steady is the part of a slice in which both sides worked side by side, as they do in a long
// transfer: after the scheduler has given each of them a CPU, and before the last byte was fed. A
// nil figure could not be read.
type Steady struct {
	WallNS      time.Duration  `json:"wall_ns"`
	Bytes       unit.Bytes     `json:"bytes"` // payload that arrived
	ClientCPUNS *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS *time.Duration `json:"server_cpu_ns,omitempty"`
}

// Phases is the cost of a login. CPU figures cover the whole process tree of that side, from fork
// to exit.
type Phases struct {
	LoginNS     time.Duration  `json:"login_ns"` // start of the client to the start of the remote command
	ClientCPUNS *time.Duration `json:"client_cpu_ns,omitempty"`
	ServerCPUNS *time.Duration `json:"server_cpu_ns,omitempty"`
}

// Finding is a remark for the reader.
type Finding struct {
	What     string `json:"what"`
	Why      string `json:"why,omitempty"`
	Evidence string `json:"evidence,omitempty"`
	Fix      string `json:"fix,omitempty"`
}

// End says why a run ended. A resumed file holds one for each time.
type End struct {
	Why string `json:"why"` // "budget", "precision", "complete", "failures" or "interrupted"
}
