package watch

import (
	"bytes"
	"fmt"

	"sshpace/internal/base/unit"
)

// sent is all that a host has sent.
type sent struct {
	*view
	host *hostView
	buf  []byte // a part of it
	from int64  // where that begins
}

func (s *sent) title() string {
	state, took := s.host.now(s.rank(s.host))
	title := fmt.Sprintf("%s: %s %s, %s", s.host.name, state, took, unit.Bytes(s.end()))
	if c := s.host.content; c.Dropped > 0 {
		title += fmt.Sprintf(", %s more were not kept: %s", unit.Bytes(c.Dropped), safe(c.Lost.Error()))
	}
	if s.host.result == nil { // the last line may be incomplete
		title += ": " + s.host.said()
	}
	return title
}

// arrows stand before the kinds of lines, as in the lines of a run without a view.
var arrows = map[byte]string{ofStdout: "-> ", ofStderr: "=> ", goesOn: "+> ", ofEnd: "=: "}

func (s *sent) line(at int64, skip, width int) (line, color string, next int64) {
	kind, line, next := s.piece(at)
	if kind == ofStderr || kind == ofEnd {
		color = "31"
	}
	return part(arrows[kind]+part(safe(line), skip, 0), 0, width), color, next
}

// piece returns the line at a place as it came, its kind, and the next place.
func (s *sent) piece(at int64) (kind byte, line string, next int64) {
	piece := s.read(at, min(at+maxLine+2, s.end()))
	n := bytes.IndexByte(piece, '\n')
	if n < 1 {
		return 0, "", at
	}
	return piece[0], string(piece[1:n]), at + int64(n) + 1
}

func (s *sent) before(at int64) int64 {
	from := max(0, at-maxLine-2)
	piece := s.read(from, at)
	return from + 1 + int64(bytes.LastIndexByte(piece[:max(0, len(piece)-1)], '\n'))
}

func (s *sent) end() int64 { return s.host.content.Size }

// readAround is how much is read before and behind a place at once, in bytes.
const readAround = 32 << 10

// read returns the bytes between two places, fewer where they cannot be read. What is read once is
// kept: nothing but more comes behind it.
func (s *sent) read(from, to int64) []byte {
	if from < s.from || to > s.from+int64(len(s.buf)) {
		s.from = max(0, from-readAround)
		s.buf = make([]byte, min(to+readAround, s.end())-s.from)
		n := 0
		for n < len(s.buf) {
			more, err := s.store.ReadAt(&s.host.content, s.buf[n:], s.from+int64(n))
			if n += more; err != nil || more == 0 {
				break
			}
		}
		s.buf = s.buf[:n]
	}
	size := int64(len(s.buf))
	return s.buf[min(from-s.from, size):min(to-s.from, size)]
}
