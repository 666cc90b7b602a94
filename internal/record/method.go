package record

import (
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
)

// Method is a transfer method: how people move bytes through SSH, with which programs and which
// algorithms.
type Method struct {
	Mode        Mode       `json:"mode"`
	Direction   Direction  `json:"direction"`
	Client      string     `json:"client,omitempty"` // the implementation, such as "openssh 9.2p1"; "": that of the environment
	Server      string     `json:"server,omitempty"`
	Suite       alg.Suite  `json:"suite"` // negotiated, or wanted where that was not visible
	Streams     int        `json:"streams,omitempty"`
	Files       int        `json:"files,omitempty"`      // number of files of FileBytes each; 0: one
	FileBytes   unit.Bytes `json:"file_bytes,omitempty"` // of each
	Compression bool       `json:"compression,omitempty"`
	SizeBytes   unit.Bytes `json:"size_bytes,omitempty"` // of the long runs
	Why         string     `json:"why,omitempty"`        // reason why it was not measured
	Path
}

// Same reports whether two methods are one, measured twice.
func (m Method) Same(other Method) bool {
	for _, each := range []*Method{&m, &other} {
		each.SizeBytes, each.Why = 0, ""
	}
	return m == other
}

// Path is the simulated path between client and server: sshpace's own relay.
type Path struct {
	RTT          time.Duration `json:"path_rtt_ns,omitempty"`      // round trip
	BytesPerS    float64       `json:"path_bytes_per_s,omitempty"` // 0: not limited
	SegmentsLost float64       `json:"path_loss_share,omitempty"`  // of all segments, 0 to 1
}

// Mode is a way to move bytes with SSH.
type Mode string

// The modes.
const (
	ModePipe      Mode = "pipe"       // through a command's standard input or output
	ModeSCP       Mode = "scp"        // scp with the SFTP protocol
	ModeSCPLegacy Mode = "scp -O"     // scp with its own protocol
	ModeSFTP      Mode = "sftp"       //
	ModeRsync     Mode = "rsync"      // rsync over ssh
	ModeMSCP      Mode = "mscp"       // several connections of one program
	ModeOwn       Mode = "own"        // sshpace copy and fetch
	ModeForwardL  Mode = "forward -L" // through a forwarded port
	ModeForwardR  Mode = "forward -R" //
	ModeJump      Mode = "jump"       // a pipe through a jump host
	ModeMultiplex Mode = "multiplex"  // several sessions on one connection
	// ModeKept is a pipe over a connection that is kept for all.
	ModeKept    Mode = "kept connection"
	ModeStreams Mode = "streams" // several connections at once
)

// Modes lists all modes.
var Modes = []Mode{ModePipe, ModeSCP, ModeSCPLegacy, ModeSFTP, ModeRsync, ModeMSCP, ModeOwn, ModeForwardL, ModeForwardR, ModeJump, ModeMultiplex, ModeKept, ModeStreams}

// Moving returns how long each long run of a method moved bytes: its time beyond the median of the
// short ones. It is 0 for a run that is not long enough to show that, and for all without short
// ones.
func Moving(long, short []time.Duration) []time.Duration {
	moving := make([]time.Duration, len(long))
	if len(short) == 0 {
		return moving
	}
	sorted, middle := slices.Sorted(slices.Values(short)), len(short)/2
	start := sorted[middle]
	if len(short)%2 == 0 {
		start = (sorted[middle-1] + start) / 2
	}
	for i, wall := range long {
		if Tells(wall, start) {
			moving[i] = wall - start
		}
	}
	return moving
}

// Tells reports whether a long run took so much longer than a short one that the difference is due
// to its bytes, and not to the variation of runs.
func Tells(long, short time.Duration) bool { return long-short > short/20 }

// Limit is the limit of a transfer's speed, as far as it is known.
type Limit struct {
	Mode      Mode      `json:"mode"`
	Direction Direction `json:"direction"`
	Suite     alg.Suite `json:"suite"`
	What      string    `json:"what"` // one of Limiting
	Sentence  string    `json:"sentence"`
	Help      string    `json:"help"`
	Evidence  Evidence  `json:"evidence"`
	Path
}

// The limits of a transfer.
const (
	LimitClientCPU  = "client CPU"
	LimitServerCPU  = "server CPU"
	LimitBothCPUs   = "both CPUs"
	LimitBusy       = "busy machine"
	LimitHarness    = "harness"
	LimitLink       = "link"
	LimitLosses     = "losses"
	LimitWindow     = "window"
	LimitSource     = "source"
	LimitSink       = "sink"
	LimitUnknown    = "unknown"
	LimitSourceDisk = "source disk"
	LimitSinkDisk   = "sink disk"
)

// Limiting lists all of them.
var Limiting = []string{
	LimitClientCPU, LimitServerCPU, LimitBothCPUs, LimitBusy, LimitHarness, LimitLink, LimitLosses, LimitWindow, LimitSource, LimitSink, LimitUnknown, LimitSourceDisk, LimitSinkDisk,
}

// Evidence is measured during a transfer. Shares are of one core, or of the time, from 0 to 1; a
// nil figure could not be read.
type Evidence struct {
	BytesPerSecond float64       `json:"bytes_per_s"`
	Compressed     bool          `json:"compressed,omitempty"` // by ssh
	RTTNS          time.Duration `json:"rtt_ns,omitempty"`     // of our own path, or of a question to the host
	TCPRTTNS       time.Duration `json:"tcp_rtt_ns,omitempty"` // of the client's connection, the smallest
	ClientShare    *float64      `json:"client_cpu_share,omitempty"`
	ClientWaits    *float64      `json:"client_wait_share,omitempty"` // runnable, but not running
	ServerShare    *float64      `json:"server_cpu_share,omitempty"`
	ServerWaits    *float64      `json:"server_wait_share,omitempty"`
	HarnessShare   float64       `json:"harness_cpu_share,omitempty"` // source and sink of sshpace
	Cores          int           `json:"cores,omitempty"`             // of this machine, where both sides run on it
	OwnCores       int           `json:"own_cores,omitempty"`         // of this machine, wherever the server is
	BusyCores      float64       `json:"busy_cores,omitempty"`        // of this machine, kept busy by any process
	Retransmitted  float64       `json:"retransmitted_share,omitempty"`
	SourceEmpty    *float64      `json:"source_empty_share,omitempty"` // the client had nothing to read
	SinkFull       *float64      `json:"sink_full_share,omitempty"`    // nobody read the data that had arrived
	Stalled        *float64      `json:"stalled_share,omitempty"`      // nothing arrived for more than a tenth of a second
	TwoBytesPerS   float64       `json:"two_bytes_per_s,omitempty"`    // of two connections at once, together
	TwoBusyCores   float64       `json:"two_busy_cores,omitempty"`     // at that time, as BusyCores
	RawBytesPerS   float64       `json:"raw_bytes_per_s,omitempty"`    // of TCP on the same path, without SSH
	ReadBytesPerS  float64       `json:"read_bytes_per_s,omitempty"`   // of the copied file, where it is, without SSH
	WriteBytesPerS float64       `json:"write_bytes_per_s,omitempty"`  // of as many bytes to their destination, without SSH
}

// crowded is the share of this machine's cores from which on all of them count as busy.
const crowded = 0.85

// Crowded reports whether all cores of this machine were busy: a process that used little of one
// may have been waiting for it.
func (e Evidence) Crowded() bool {
	return e.OwnCores > 0 && max(e.BusyCores, e.TwoBusyCores) >= crowded*float64(e.OwnCores)
}
