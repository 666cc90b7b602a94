package fleet

import (
	"fmt"
	"io"
	"os"
	"sync"

	"sshpace/internal/sys/file"
)

// Spool is an input that is read once and handed to every host, each at its own
// pace: what a slow host has not taken yet is kept, in memory up to a bound and
// beyond that in an unlinked temporary file.
type Spool struct {
	mu    sync.Mutex
	grown *sync.Cond // size grew, or the source ended
	mem   []byte     // the first bytes
	file  *os.File   // the rest
	size  int64
	ended bool
	err   error // why the source ended, nil at its end of file
}

// spoolMemory is how much of an input is kept in memory.
const spoolMemory = 4 << 20

// NewSpool begins to read src, in its own goroutine, which ends with src. The
// caller closes the Spool when no host reads it any more.
func NewSpool(src io.Reader) *Spool {
	s := &Spool{}
	s.grown = sync.NewCond(&s.mu)
	go s.fill(src)
	return s
}

// SpoolBytes is a Spool that holds data.
func SpoolBytes(data []byte) *Spool {
	s := &Spool{mem: data, size: int64(len(data)), ended: true}
	s.grown = sync.NewCond(&s.mu)
	return s
}

func (s *Spool) fill(src io.Reader) {
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		if werr := s.add(buf[:n]); err == nil {
			err = werr
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

func (s *Spool) add(p []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return os.ErrClosed
	}
	room := min(len(p), spoolMemory-len(s.mem))
	s.mem = append(s.mem, p[:room]...)
	if rest := p[room:]; len(rest) > 0 {
		if err := s.spill(rest); err != nil {
			return err
		}
	}
	s.size += int64(len(p))
	s.grown.Broadcast()
	return nil
}

// spill appends to the file, which is made on first use.
func (s *Spool) spill(p []byte) (err error) {
	if s.file == nil {
		s.file, err = file.Unnamed("")
	}
	if err == nil {
		_, err = s.file.Write(p)
	}
	if err != nil {
		return fmt.Errorf("spill standard input: %w", err)
	}
	return nil
}

func (s *Spool) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == io.EOF {
		err = nil
	}
	if !s.ended {
		s.ended, s.err = true, err
	}
	s.grown.Broadcast()
}

// Close ends all readers and frees the file. It does not end a source that
// blocks in Read; its next bytes are dropped.
func (s *Spool) Close() error {
	s.end(os.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}

// Err is why reading the source ended early, nil if it did not.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Reader starts at the beginning of the input. Its Read waits for the source;
// Close makes a waiting Read return.
func (s *Spool) Reader() io.ReadCloser { return &spoolReader{spool: s} }

type spoolReader struct {
	spool  *Spool
	offset int64
	closed bool // guarded by spool.mu
}

func (r *spoolReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	s := r.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	for r.offset == s.size && !s.ended && !r.closed {
		s.grown.Wait()
	}
	switch {
	case r.closed:
		return 0, os.ErrClosed
	case r.offset < int64(len(s.mem)):
		n := copy(p, s.mem[r.offset:])
		r.offset += int64(n)
		return n, nil
	case r.offset < s.size && s.file != nil:
		n, err := s.file.ReadAt(p[:min(int64(len(p)), s.size-r.offset)], r.offset-int64(len(s.mem)))
		r.offset += int64(n)
		return n, err
	case s.err != nil:
		return 0, s.err
	}
	return 0, io.EOF
}

func (r *spoolReader) Close() error {
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	r.closed = true
	r.spool.grown.Broadcast()
	return nil
}
