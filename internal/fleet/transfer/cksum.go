package transfer

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/fleet/remotesh"
)

// cksum is the checksum of cksum(1), which every POSIX host has: a CRC with
// the polynomial of crc32.IEEE whose bits go the other way round, over the data and
// their length (IEEE Std 1003.1, cksum). Turning every byte round lets the CPU's
// own instruction do it.
type cksum struct {
	crc  uint32 // of what came, turned round
	size int64
}

func newCksum() *cksum { return &cksum{} }

// Write turns round the bits of each byte of p, and back when they are counted.
func (c *cksum) Write(p []byte) (int, error) {
	var turned [4096]byte
	for rest := p; len(rest) > 0; {
		n := min(len(rest), len(turned))
		reverse(turned[:n], rest[:n])
		c.crc = ^crc32.Update(^c.crc, crc32.IEEETable, turned[:n])
		rest = rest[n:]
	}
	c.size += int64(len(p))
	return len(p), nil
}

// reverse copies bytes with their bits turned round.
func reverse(to, from []byte) {
	for len(from) >= 8 {
		v := binary.LittleEndian.Uint64(from)
		v = v>>4&0x0f0f0f0f0f0f0f0f | v&0x0f0f0f0f0f0f0f0f<<4
		v = v>>2&0x3333333333333333 | v&0x3333333333333333<<2
		v = v>>1&0x5555555555555555 | v&0x5555555555555555<<1
		binary.LittleEndian.PutUint64(to, v)
		to, from = to[8:], from[8:]
	}
	for i, b := range from {
		to[i] = bits.Reverse8(b)
	}
}

// sum is what cksum(1) prints.
func (c *cksum) sum() uint32 {
	crc := c.crc
	for n := c.size; n > 0; n >>= 8 {
		crc = ^crc32.Update(^crc, crc32.IEEETable, []byte{bits.Reverse8(byte(n))})
	}
	return ^bits.Reverse32(crc)
}

func cksumOf(r io.Reader) (uint32, int64, error) {
	c := newCksum()
	_, err := io.CopyBuffer(c, struct{ io.Reader }{r}, make([]byte, 64<<10))
	return c.sum(), c.size, err
}

// checked is a file on the host and what it should hold.
type checked struct {
	name string
	sum  uint32
	size int64
}

func (c checked) line() string { return fmt.Sprintf("%d %d %s\n", c.sum, c.size, c.name) }

// maxProgram is how long the program with the names may be, in bytes: a host's
// argument list holds at least that.
const maxProgram = 96 << 10

// asHost asks the host's cksum about files. ok is false where it says anything but
// that all are as they should be, or where there is none to ask.
func (s *side) asHost(files []checked) (ok bool) {
	for len(files) > 0 && !s.noExec {
		program, expected := strings.Builder{}, strings.Builder{}
		program.WriteString("exec cksum --")
		var size int64
		n := 0
		for ; n < len(files) && program.Len() < maxProgram; n++ {
			program.WriteString(" " + shell.Quote(files[n].name))
			expected.WriteString(files[n].line())
			size += files[n].size
		}
		line, input := remotesh.Command(program.String())
		ctx, cancel := context.WithTimeout(s.ctx, time.Minute+time.Duration(size/1e7)*time.Second)
		said, err := s.ch.Exec(ctx, line, input)
		cancel()
		if err != nil && len(said) == 0 {
			s.noExec = true
		}
		if err != nil || string(said) != expected.String() {
			return false
		}
		files = files[n:]
	}
	return !s.noExec
}
