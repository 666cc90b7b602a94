package dropin

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

const (
	// pyIdle ends a chunk: mpssh.py prints the output of a stream once it has been silent for that
	// long.
	pyIdle = 200 * time.Millisecond
	// pyChunk bounds a chunk: beyond it whole lines are printed early.
	pyChunk = 64 << 10
)

// pySink prints as mpssh.py does, all of it to standard output.
type pySink struct {
	fleet.Nothing
	p        *pySSH
	env      Env
	names    []string // by index
	width    int      // of the longest name, in characters
	program  bool     // the engine is a user's program
	stop     chan struct{}
	watching sync.WaitGroup

	mu                sync.Mutex
	live              output.PerHost[[2]pyStream]
	buf               bytes.Buffer
	err               error // of printing from the watcher
	ok, nonOK, failed int
}

var _ fleet.Sink = (*pySink)(nil)

// pyStream is a chunk of one stream that is still growing.
type pyStream struct {
	data []byte
	bad  int       // characters removed from the part that was printed early
	last time.Time // when data came
}

func newPySink(p *pySSH, env Env, names []string) *pySink {
	s := &pySink{p: p, env: env, names: names, program: p.SSHBin != "", stop: make(chan struct{})}
	for _, name := range names {
		s.width = max(s.width, utf8.RuneCountInString(name))
	}
	return s
}

// Begin starts the watcher that ends silent chunks.
func (s *pySink) Begin(fleet.Start) error {
	s.watching.Go(s.watch)
	return nil
}

// End stops the sink.
func (s *pySink) End(fleet.Summary) error {
	close(s.stop)
	s.watching.Wait()
	return nil
}

func (s *pySink) watch() {
	t := time.NewTicker(pyIdle / 4)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			s.printSilent(now)
		}
	}
}

func (s *pySink) printSilent(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for index, streams := range s.live {
		for i := range streams {
			if st := &streams[i]; !st.last.IsZero() && now.Sub(st.last) >= pyIdle {
				s.chunk(index, fleet.Stream(i), st)
			}
		}
	}
	s.flush()
}

// Output collects a chunk.
func (s *pySink) Output(e fleet.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := &s.live.Of(e.Index)[e.Stream]
	st.data, st.last = append(st.data, e.Data...), time.Now()
	if len(st.data) > pyChunk {
		s.early(e.Index, e.Stream, st)
	}
	s.flush()
	return output.Loss(s.err)
}

// Done prints held output and the end of the host.
func (s *pySink) Done(r fleet.Result, _ fleet.Summary) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := judge(&r, s.program)
	for i, st := range s.live.Take(r.Index) {
		if !st.last.IsZero() {
			s.chunk(r.Index, fleet.Stream(i), &st)
		}
	}
	for _, line := range heard(s.p.dashed(), v.message) {
		s.print(r.Index, "=>", red, []byte(line))
	}
	s.ending(r.Index, v)
	s.flush()
	return output.Loss(s.err)
}

// ending counts the host and prints its exit message, if it has one.
func (s *pySink) ending(index int, v verdict) {
	text, color := "", red
	switch {
	case v.exec != 0:
		s.failed++
		text = fmt.Sprintf("exec(%s) error(%d): %s", s.p.SSHBin, int(v.exec), fault.Strerror(v.exec))
	case v.signal != 0:
		s.failed++
		text = fmt.Sprintf("SSH killed with signal %d", v.signal)
	case v.code == 0:
		s.ok++
		if s.p.ZeroExit {
			text, color = "SSH exit code 0", green
		}
	case v.code == 255:
		s.failed++
		text = "SSH exit code 255 (possible SSH failure)"
	default:
		s.nonOK++
		if !s.p.IgnoreExit {
			text = fmt.Sprintf("SSH exit code %d", v.code)
		}
	}
	if text != "" {
		s.print(index, "=:", color, []byte(text))
	}
}

// chunk prints a whole chunk and how many characters were removed from it.
func (s *pySink) chunk(index int, stream fleet.Stream, st *pyStream) {
	bad := st.bad + s.text(index, stream, st.data)
	*st = pyStream{data: st.data[:0]}
	if cap(st.data) > 2*pyChunk {
		st.data = nil
	}
	if bad > 0 && !s.p.Silent {
		s.print(index, "=:", red, fmt.Appendf(nil, "%d non-printable characters were ignored", bad))
	}
}

// early prints the whole lines of a chunk that has become large. A carriage return at the end may
// belong to a newline that is still to come.
func (s *pySink) early(index int, stream fleet.Stream, st *pyStream) {
	end := bytes.LastIndexAny(st.data[:len(st.data)-1], "\r\n") + 1
	if end > 0 && st.data[end-1] == '\r' && st.data[end] == '\n' {
		end++
	}
	if end == 0 { // one long line: whole pieces of it
		end = len(st.data) - len(st.data)%s.p.MaxLen
		if end == len(st.data) {
			end -= s.p.MaxLen
		}
	}
	if end <= 0 {
		return
	}
	st.bad += s.text(index, stream, st.data[:end])
	st.data = append(st.data[:0], st.data[end:]...)
}

// text prints lines and returns how many characters were removed.
func (s *pySink) text(index int, stream fleet.Stream, data []byte) (bad int) {
	arrow, color := "->", green
	if stream == fleet.Stderr {
		arrow, color = "=>", red
	}
	for _, line := range splitLines(data) {
		for _, piece := range cutBytes(line, s.p.MaxLen) {
			kept, removed := s.printable(piece)
			bad += removed
			s.line(index, arrow, color, kept)
		}
	}
	return bad
}

// printable removes control characters as mpssh.py does, which keeps tabs and everything from 0x80
// on. Only for a terminal it removes more.
func (s *pySink) printable(piece []byte) (kept []byte, removed int) {
	if s.p.BadCharsOK {
		return piece, 0
	}
	kept = make([]byte, 0, len(piece))
	for _, c := range piece {
		if c < 0x20 && c != '\t' || c == 0x7f {
			removed++
			continue
		}
		kept = append(kept, c)
	}
	return s.env.safe(fleet.Stdout, kept), removed
}

// print prints a message of our own, which is cut like output.
func (s *pySink) print(index int, arrow, color string, text []byte) {
	for _, piece := range cutBytes(text, s.p.MaxLen) {
		s.line(index, arrow, color, piece)
	}
}

const (
	green  = "\x1b[1;32m"
	red    = "\x1b[1;31m"
	yellow = "\x1b[1;33m"
	plain  = "\x1b[0;39m"
)

func (s *pySink) line(index int, arrow, color string, text []byte) {
	name := s.names[index]
	if s.env.StdoutTTY {
		name, arrow = termsafe.Line(name), color+arrow+plain
	}
	s.buf.WriteString(name)
	s.buf.WriteString(strings.Repeat(" ", max(0, s.width-utf8.RuneCountInString(name))))
	s.buf.WriteString(" " + arrow + " ")
	s.buf.Write(text)
	s.buf.WriteByte('\n')
}

// flush writes the buffer with one Write and keeps the first error.
func (s *pySink) flush() {
	if s.buf.Len() == 0 {
		return
	}
	if _, err := s.env.Stdout.Write(s.buf.Bytes()); err != nil && s.err == nil {
		s.err = err
	}
	s.buf.Reset()
}

// splitLines cuts at LF, CR and CRLF; a line end at the very end adds no line.
func splitLines(data []byte) [][]byte {
	var lines [][]byte
	for len(data) > 0 {
		end := bytes.IndexAny(data, "\r\n")
		if end < 0 {
			return append(lines, data)
		}
		lines = append(lines, data[:end])
		if data[end] == '\r' && end+1 < len(data) && data[end+1] == '\n' {
			end++
		}
		data = data[end+1:]
	}
	return lines
}

// cutBytes cuts a line every max bytes; an empty line is one empty piece.
func cutBytes(line []byte, max int) [][]byte {
	if len(line) == 0 {
		return [][]byte{line}
	}
	return slices.Collect(slices.Chunk(line, max))
}
