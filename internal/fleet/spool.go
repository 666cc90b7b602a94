package fleet

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"sync"

	"sshpace/internal/sys/file"
)

// Spool is an input that is read once and passed to every host, each at its own pace: the part that
// a slow host has not read yet is kept.
type Spool struct {
	mu    sync.Mutex
	grown *sync.Cond // there is more, or the source ended
	store file.Store
	all   file.Content
	ended bool
	err   error // why the source ended, nil at its end of file
}

// spoolMemory is how much of an input is kept in memory.
const spoolMemory = 4 << 20

// NewSpool begins to read src, in its own goroutine, which ends with src. The caller closes the
// Spool when no host reads it any more.
func NewSpool(src io.Reader) *Spool {
	s := newSpool(spoolMemory)
	go s.fill(src)
	return s
}

// SpoolBytes is a Spool that holds data.
func SpoolBytes(data []byte) *Spool {
	s := newSpool(int64(len(data)))
	s.end(s.add(data))
	return s
}

func newSpool(memory int64) *Spool {
	s := &Spool{store: file.Store{What: "standard input", Limit: memory}}
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
	s.grown.Broadcast()
	return cmp.Or(s.store.Add(&s.all, p), s.all.Lost)
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

// Close ends all readers and frees the file. It does not end a source that blocks in Read; its next
// bytes are dropped.
func (s *Spool) Close() error {
	s.end(os.ErrClosed)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.Close()
}

// Err returns why reading the source ended early, nil if it did not.
func (s *Spool) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Reader starts at the beginning of the input. Its Read waits for the source; Close makes a waiting
// Read return.
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
	for r.offset == s.all.Size && !s.ended && !r.closed {
		s.grown.Wait()
	}
	if r.closed {
		return 0, os.ErrClosed
	}
	n, err := s.store.ReadAt(&s.all, p, r.offset)
	if r.offset += int64(n); n == 0 && err == nil {
		err = cmp.Or(s.err, io.EOF)
	}
	return n, err
}

func (r *spoolReader) Close() error {
	r.spool.mu.Lock()
	defer r.spool.mu.Unlock()
	r.closed = true
	r.spool.grown.Broadcast()
	return nil
}

// Prefixed is an input behind some bytes of a host's own.
type Prefixed struct {
	Head  []byte
	Input Input // nil: nothing follows
}

// Reader starts at the beginning of the bytes.
func (p Prefixed) Reader() io.ReadCloser {
	head := bytes.NewReader(p.Head)
	if p.Input == nil {
		return io.NopCloser(head)
	}
	rest := p.Input.Reader()
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(head, rest), rest}
}
