package output

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"sshpace/internal/sys/file"
)

// store keeps many byte sequences, in memory up to a limit and beyond it in one
// temporary file, which nobody else can read and which has no name.
type store struct {
	dir    string // where the file is made; "" = os.TempDir
	limit  int64  // bytes kept in memory
	inside int64  // bytes in memory now
	file   *os.File
	size   int64 // of the file
}

// content is one sequence: parts in the file, then the end in memory.
type content struct {
	extents []extent
	tail    []byte
	lost    error // why nothing more is kept
	dropped int64 // bytes that came after that
	size    int64 // bytes kept
}

// extent is a part of the file.
type extent struct{ offset, length int64 }

// A tail goes to the file when it has minSpill bytes and memory is short, and in
// any case at maxTail, lest one host's growing buffer is copied again and again.
const (
	minSpill = 32 << 10
	maxTail  = 256 << 10
)

// add appends data to c. When there is no room for more, c keeps what it has.
func (s *store) add(c *content, data []byte) error {
	if c.lost != nil {
		c.dropped += int64(len(data))
		return c.lost
	}
	c.tail = append(c.tail, data...)
	c.size += int64(len(data))
	s.inside += int64(len(data))
	short := s.inside > s.limit && len(c.tail) >= minSpill
	if !short && len(c.tail) < maxTail {
		return nil
	}
	c.lost = s.spill(c)
	return nil // nothing is lost yet
}

// settle moves what c holds in memory into the file if memory is short and the
// file has room. It is for sequences that are complete, whatever their size.
func (s *store) settle(c *content) {
	c.tail = bytes.Clone(c.tail) // without the room to grow
	if s.inside > s.limit && c.lost == nil {
		c.lost = s.spill(c)
	}
}

func (s *store) spill(c *content) (err error) {
	if len(c.tail) == 0 {
		return nil
	}
	if s.file == nil {
		s.file, err = file.Unnamed(s.dir)
	}
	if err == nil {
		_, err = s.file.WriteAt(c.tail, s.size)
	}
	if err != nil {
		return fmt.Errorf("keep output: %w", err)
	}
	c.extents = append(c.extents, extent{s.size, int64(len(c.tail))})
	s.size += int64(len(c.tail))
	s.inside -= int64(len(c.tail))
	c.tail = nil
	return nil
}

// drop forgets c.
func (s *store) drop(c *content) {
	s.inside -= int64(len(c.tail))
	*c = content{}
}

// reader reads c from its beginning.
func (s *store) reader(c *content) io.Reader {
	var parts []io.Reader
	for _, e := range c.extents {
		parts = append(parts, io.NewSectionReader(s.file, e.offset, e.length))
	}
	return io.MultiReader(append(parts, bytes.NewReader(c.tail))...)
}

// Close frees the file.
func (s *store) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
