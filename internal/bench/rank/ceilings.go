package rank

import (
	"strings"
	"time"

	"sshpace/internal/record"
)

// Ceilings relate the fastest cell of a ranking to what its machine can do at
// most, and name what limits it.
type Ceilings struct {
	Cell     Cell
	Measured time.Time // when the machine was measured
	Rows     []Ceiling
	Limiting string // name of the ceiling that is nearest; "" where none is near
	Disk     string // name of the disk's ceiling, if a copy of files would hit it before that of SSH; "" if not
}

// Ceiling is one limit.
type Ceiling struct {
	Name    string
	Limit   float64 // bytes per second
	Share   float64 // of the cell's throughput in it: 1 is all; 0 for a control
	Control bool    // measured for comparison only: it limits nothing
	part    bool    // SSH's data goes through it: it can limit the cell
}

// near is the share from which on a ceiling is taken for what limits.
const near = 0.6

// Names of the ceilings that a ranking knows itself.
const (
	ClientCPU = "client CPU, one core"
	ServerCPU = "server CPU, one core"
)

// flows are the measurements that every byte goes through, by the beginning of
// their names; loopback only where both sides are one machine.
var flows = []struct {
	prefix string
	remote bool // also on the way to another machine
}{{record.PipeFlow, true}, {record.LoopbackFlow, false}}

// primitives are the measurements of what ciphers compute, by the name of the
// cipher's standard. They bound a cell from above; OpenSSH computes more.
var primitives = map[string]string{
	"aes128-gcm@openssh.com": "AES-128-GCM ", "aes256-gcm@openssh.com": "AES-256-GCM ",
	"aes128-ctr": "AES-128-CTR ", "aes192-ctr": "AES-192-CTR ", "aes256-ctr": "AES-256-CTR ",
	"chacha20-poly1305@openssh.com": "ChaCha20-Poly1305 ",
}

// CeilingsOf relates a ranking to the measurements of its machine; nil where
// the ranking has no throughput.
func CeilingsOf(r *Ranking, machine *record.File) *Ceilings {
	best := fastest(r.Bulk)
	if best == nil {
		return nil
	}
	c := &Ceilings{Cell: *best, Measured: machine.Campaign.Started}
	c.processors(r)
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
		case record.DiskSmall: // the control: what system calls cost
			c.Rows = append(c.Rows, Ceiling{Name: m.Name, Limit: rate, Control: true})
		case record.DiskLarge: // as programs that copy read
			c.add(m.Name, rate, false)
			if rate < best.Throughput.Value {
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

// fastest is the cell with the highest throughput, of those that are measured
// if there are any.
func fastest(cells []Cell) *Cell {
	var best *Cell
	for i := range cells {
		c := &cells[i]
		if c.Throughput == nil || best != nil && c.Basis == Predicted && best.Basis == Measured {
			continue
		}
		better := best == nil || c.Basis == Measured && best.Basis == Predicted || c.Throughput.Value > best.Throughput.Value
		if better {
			best = c
		}
	}
	return best
}

// processors adds what one core could do if nothing else held it up. OpenSSH
// uses one core on either side.
func (c *Ceilings) processors(r *Ranking) {
	if c.Cell.Client != nil {
		c.add(ClientCPU, inverse(c.Cell.Client.Value), true)
	}
	if c.Cell.Server != nil {
		c.add(ServerCPU, inverse(c.Cell.Server.Value), true)
	}
	if total := c.Cell.Total(); r.Environment.Cores == 1 && r.Campaign.Server != record.ServerRemote && c.Cell.Server != nil && total > 0 {
		c.add("the one core that both share", inverse(total), true)
	}
}

func (c *Ceilings) add(name string, limit float64, part bool) {
	if limit > 0 {
		c.Rows = append(c.Rows, Ceiling{Name: name, Limit: limit, Share: c.Cell.Throughput.Value / limit, part: part})
	}
}

// limit finds the nearest ceiling. What SSH exceeds is none: it was measured while
// something else slowed the machine.
func (c *Ceilings) limit() {
	highest := near
	for _, row := range c.Rows {
		if row.part && row.Share >= highest && row.Share <= 1 {
			highest, c.Limiting = row.Share, row.Name
		}
	}
}
