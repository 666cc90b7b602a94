package record

// Measurement is a measured quantity other than an SSH trial: the speed of a cryptographic
// primitive, of a pipe, of a disk. Values stay in the unit of the program that measured them, so
// that imported figures remain exact.
type Measurement struct {
	Source string  `json:"source"` // program: "openssl speed", "nbench", "bonnie++", "dd", "sshpace limits"
	Name   string  `json:"name"`   // such as "AES-256-CBC 1024" or "pipe"; the same thing has the same name in every file
	Unit   Unit    `json:"unit"`
	Value  float64 `json:"value"`
	Lo     float64 `json:"lo,omitempty"` // range of repeated measurements, not a 95 % interval; both 0 for a single one
	Hi     float64 `json:"hi,omitempty"`
	N      int     `json:"n,omitempty"` // repetitions
}

// Names of measurements that reports compare SSH with.
const (
	MemoryCopy   = "memory copy"
	PipeFlow     = "pipe"         // the size of blocks follows
	LoopbackFlow = "loopback TCP" // the size of blocks follows
	DiskSmall    = "disk read, blocks of 512"
	DiskLarge    = "disk read, blocks of 8M"
	FileCached   = "file read, page cache"
	FileDisk     = "file read, disk"
)

// Unit is the unit of a Measurement.
type Unit string

// The units. For times less is better, for everything else more.
const (
	BytesPerSecond Unit = "bytes/s"
	KBPerSecond    Unit = "kB/s"  // 1000 bytes per second, as openssl speed prints
	KiBPerSecond   Unit = "KiB/s" // 1024 bytes per second, as bonnie++ prints
	PerSecond      Unit = "1/s"
	Index          Unit = "index" // relative to a machine that the program names
	Milliseconds   Unit = "ms"
)

// BytesPerSecond returns how many bytes per second one of the unit is; ok is false if the unit is
// not a throughput.
func (u Unit) BytesPerSecond() (n float64, ok bool) {
	n, ok = map[Unit]float64{BytesPerSecond: 1, KBPerSecond: 1000, KiBPerSecond: 1024}[u]
	return n, ok
}

// BytesPerSecond returns the value as a throughput; ok is false if it is none.
func (m Measurement) BytesPerSecond() (rate float64, ok bool) {
	one, ok := m.Unit.BytesPerSecond()
	return m.Value * one, ok
}
