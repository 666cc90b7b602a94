package compare

import (
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Ceilings compares the fastest cell of a ranking with the limits of its machine, and names the
// limit.
type Ceilings struct {
	alg.Suite                   // of that cell
	Direction  record.Direction `json:"direction"`
	Throughput stats.Interval   `json:"throughput_bytes_per_s"`
	Measured   time.Time        `json:"measured"`           // when the machine was
	Limiting   string           `json:"limiting,omitempty"` // name of the ceiling that is nearest; "" where none is near
	Disk       string           `json:"disk,omitempty"`     // name of the disk's ceiling, if a copy of files would hit it before that of SSH; "" if not
	Rows       []Ceiling        `json:"limits"`
}

// Ceiling is one limit.
type Ceiling struct {
	Name    string  `json:"name"`
	Limit   float64 `json:"bytes_per_s"`
	Share   float64 `json:"share_pct,omitempty"` // of it that the cell's throughput is; 0 for a control
	Control bool    `json:"control,omitempty"`   // measured for comparison only: it limits nothing
	part    bool    // SSH's data goes through it: it can limit the cell
}

// near is the share, in percent, from which on a ceiling counts as the limit.
const near = 60

// Names of the ceilings that a ranking knows itself.
const (
	ClientCPU = "client CPU, one core"
	ServerCPU = "server CPU, one core"
)

// flows are the measurements that apply to every byte, by the beginning of their names; loopback
// only where both sides are one machine.
var flows = []struct {
	prefix string
	remote bool // also on the way to another machine
}{{record.PipeFlow, true}, {record.LoopbackFlow, false}}

// primitives are the measurements of ciphers' primitives, by the name of the cipher's standard.
// They bound a cell from above; OpenSSH computes more.
var primitives = map[string]string{
	"aes128-gcm@openssh.com": "AES-128-GCM ", "aes256-gcm@openssh.com": "AES-256-GCM ",
	"aes128-ctr": "AES-128-CTR ", "aes192-ctr": "AES-192-CTR ", "aes256-ctr": "AES-256-CTR ",
	"chacha20-poly1305@openssh.com": "ChaCha20-Poly1305 ",
}

// ceilingsOf compares a ranking with the measurements of its machine; nil where the ranking has no
// throughput.
func ceilingsOf(r *rank.Ranking, machine *record.File) *Ceilings {
	best := fastest(r.Bulk)
	if best == nil {
		return nil
	}
	c := &Ceilings{Suite: best.Suite, Direction: best.Direction, Throughput: *best.Throughput.Shown, Measured: machine.Campaign.Started, Rows: []Ceiling{}}
	c.processors(r, best)
	for _, m := range machine.Measurements {
		m.Value = max(m.Value, m.Hi) // at most: other work makes a round slower, never faster
		rate, ok := m.BytesPerSecond()
		if !ok || rate <= 0 {
			continue
		}
		if prefix := primitives[best.Suite.Cipher]; prefix != "" && hasPrefixFold(m.Name, prefix) || m.Name == record.MemoryCopy {
			c.add(m.Name, rate, false)
		}
		for _, flow := range flows {
			if strings.HasPrefix(m.Name, flow.prefix) && (flow.remote || r.Campaign.Server != record.ServerRemote) {
				c.add(m.Name, rate, true)
			}
		}
		switch m.Name {
		case record.DiskSmall: // the control: the cost of system calls
			c.Rows = append(c.Rows, Ceiling{Name: m.Name, Limit: rate, Control: true})
		case record.DiskLarge: // as programs that copy read
			c.add(m.Name, rate, false)
			if rate < best.Throughput.Shown.Value {
				c.Disk = m.Name
			}
		}
	}
	c.limit()
	return c
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// fastest returns the cell with the highest throughput, among the measured ones if there are any.
func fastest(cells []rank.Cell) *rank.Cell {
	var best *rank.Cell
	for i := range cells {
		c := &cells[i]
		if !c.Throughput.Known() || best != nil && c.Basis == rank.Predicted && best.Basis == rank.Measured {
			continue
		}
		better := best == nil || c.Basis == rank.Measured && best.Basis == rank.Predicted || c.Throughput.Log > best.Throughput.Log
		if better {
			best = c
		}
	}
	return best
}

// processors adds the speed of one core if nothing else held it up. OpenSSH uses one core on either
// side.
func (c *Ceilings) processors(r *rank.Ranking, of *rank.Cell) {
	if of.Client.Known() {
		c.add(ClientCPU, inverse(of.Client.Shown.Value), true)
	}
	if of.Server.Known() {
		c.add(ServerCPU, inverse(of.Server.Shown.Value), true)
	}
	if r.OneCore() && of.Server.Known() && of.Total.Known() {
		c.add("the one core that both share", inverse(of.Total.Shown.Value), true)
	}
}

func (c *Ceilings) add(name string, limit float64, part bool) {
	if limit > 0 {
		c.Rows = append(c.Rows, Ceiling{Name: name, Limit: limit, Share: 100 * c.Throughput.Value / limit, part: part})
	}
}

// limit finds the nearest ceiling. A ceiling below SSH's speed does not count: it was measured
// while something else slowed the machine.
func (c *Ceilings) limit() {
	highest := float64(near)
	for _, row := range c.Rows {
		if row.part && row.Share >= highest && row.Share <= 100 {
			highest, c.Limiting = row.Share, row.Name
		}
	}
}

// inverse turns ns per byte into bytes per second.
func inverse(nsPerByte float64) float64 {
	if nsPerByte <= 0 {
		return 0
	}
	return 1e9 / nsPerByte
}
