package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// Store keeps many byte sequences: in memory up to a limit, then in one temporary file, which has
// no name and which nobody else can read.
type Store struct {
	What  string // is kept, for errors
	Dir   string // directory of the file; "" = os.TempDir
	Limit int64  // bytes kept in memory

	inside int64 // bytes in memory now
	file   *os.File
	size   int64 // of the file
}

// Content is one sequence: parts in the file, then the end in memory.
type Content struct {
	Size    int64 // bytes kept
	Lost    error // reason why nothing more is kept
	Dropped int64 // bytes that came after that

	extents []extent
	tail    []byte
}

// extent is a part of the file.
type extent struct{ offset, length int64 }

// minSpill is the least that is moved to the file at once when memory is short.
const minSpill = 32 << 10

// Add appends data to c. If there is no room for more, c keeps what it has.
func (s *Store) Add(c *Content, data []byte) error {
	if c.Lost != nil {
		c.Dropped += int64(len(data))
		return c.Lost
	}
	c.tail = append(c.tail, data...)
	c.Size += int64(len(data))
	s.inside += int64(len(data))
	if s.inside > s.Limit && len(c.tail) >= minSpill {
		c.Lost = s.spill(c)
	}
	return nil // nothing is lost yet
}

// Settle moves the part of c in memory into the file if memory is short and the file has room. It
// is for complete sequences of any size.
func (s *Store) Settle(c *Content) {
	c.tail = bytes.Clone(c.tail) // without the room to grow
	if s.inside > s.Limit && c.Lost == nil && len(c.tail) > 0 {
		c.Lost = s.spill(c)
	}
}

func (s *Store) spill(c *Content) (err error) {
	if s.file == nil {
		s.file, err = Unnamed(s.Dir)
	}
	if err == nil {
		_, err = s.file.WriteAt(c.tail, s.size)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", s.What, err)
	}
	length := int64(len(c.tail))
	if last := len(c.extents) - 1; last >= 0 && c.extents[last].offset+c.extents[last].length == s.size {
		c.extents[last].length += length
	} else {
		c.extents = append(c.extents, extent{s.size, length})
	}
	s.size += length
	s.inside -= length
	c.tail = nil
	return nil
}

// Drop forgets c.
func (s *Store) Drop(c *Content) {
	s.inside -= int64(len(c.tail))
	*c = Content{}
}

// ReadAt reads from c at offset; nothing at its end.
func (s *Store) ReadAt(c *Content, p []byte, offset int64) (int, error) {
	for _, e := range c.extents {
		if offset < e.length {
			return s.file.ReadAt(p[:min(int64(len(p)), e.length-offset)], e.offset+offset)
		}
		offset -= e.length
	}
	return copy(p, c.tail[min(offset, int64(len(c.tail))):]), nil
}

// Reader reads c from its beginning to the end that it has now.
func (s *Store) Reader(c *Content) io.Reader { return &contentReader{store: s, of: c} }

type contentReader struct {
	store *Store
	of    *Content
	at    int64
}

func (r *contentReader) Read(p []byte) (int, error) {
	n, err := r.store.ReadAt(r.of, p, r.at)
	if r.at += int64(n); n == 0 && err == nil && len(p) > 0 {
		err = io.EOF
	}
	return n, err
}

// Close frees the file.
func (s *Store) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
