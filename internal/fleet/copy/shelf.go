package copy

import (
	"errors"
	"io"
	"slices"
	"sync"
)

const (
	// pieceSize is how much of a large file is read at once.
	pieceSize = 256 << 10
	// shelfPieces are kept beside those that hosts are sent just now: 128 MiB for all
	// hosts and files together.
	shelfPieces = 512
)

// shelf keeps pieces of large files for hosts that get them at about the same time: what
// one of them has had read, those that follow find in memory, and in part in the
// processor's caches. Reading a file once for each of 50 hosts is a quarter of what
// sending it costs.
type shelf struct {
	mu     sync.Mutex
	users  int
	pieces map[shelfPlace]*filePiece
	recent []*filePiece // the same, what was wanted last at the end
}

type shelfPlace struct {
	file   *item
	number int64
}

// filePiece is a piece of a file, read by the first who wants it.
type filePiece struct {
	at    shelfPlace
	users int // who have it now
	read  sync.Once
	buf   *[pieceSize]byte
	n     int // fewer than pieceSize at the end of the file
	err   error
}

// enter begins using the shelf.
func (s *shelf) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.users++
}

// leave ends it. Who leaves last leaves nothing in memory.
func (s *shelf) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		s.pieces, s.recent = nil, nil
	}
}

// take is a piece of a file that r reads. The caller gives it back.
func (s *shelf) take(file *item, r io.ReaderAt, number int64) *filePiece {
	p := s.find(shelfPlace{file, number})
	p.read.Do(func() {
		p.n, p.err = r.ReadAt(p.buf[:], number*pieceSize)
		if errors.Is(p.err, io.EOF) {
			p.err = nil
		}
	})
	return p
}

func (s *shelf) find(at shelfPlace) *filePiece {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pieces[at]
	if p != nil {
		s.recent = slices.DeleteFunc(s.recent, func(o *filePiece) bool { return o == p })
	} else {
		p = &filePiece{at: at, buf: s.room()}
		if s.pieces == nil {
			s.pieces = map[shelfPlace]*filePiece{}
		}
		s.pieces[at] = p
	}
	p.users++
	s.recent = append(s.recent, p)
	return p
}

// room is a buffer: that of the piece that nobody has wanted for longest, if there are
// enough.
func (s *shelf) room() *[pieceSize]byte {
	i := -1
	if len(s.recent) >= shelfPieces {
		i = slices.IndexFunc(s.recent, func(p *filePiece) bool { return p.users == 0 })
	}
	if i < 0 {
		return new([pieceSize]byte)
	}
	old := s.recent[i]
	s.recent = slices.Delete(s.recent, i, i+1)
	delete(s.pieces, old.at)
	return old.buf
}

func (s *shelf) give(p *filePiece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.users--
}
