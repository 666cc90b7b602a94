package copy

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/shell"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/remotesh"
	"sshpace/internal/ssh/sftp"
)

// cksum is the checksum of cksum(1), which every POSIX host has: a CRC with the polynomial of
// crc32.IEEE whose bits go in the opposite order, over the data and their length (IEEE Std 1003.1,
// cksum). Reversing every byte lets the CPU's own instruction compute it.
type cksum struct {
	crc  uint32 // of the data so far, reversed
	size int64
}

func newCksum() *cksum { return &cksum{} }

// Write reverses the bits of each byte of p, and restores them afterwards.
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

// reverse copies bytes with their bits reversed.
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

// sum returns the number that cksum(1) prints.
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

// checked is a file on the host with its expected content.
type checked struct {
	name string
	sum  uint32
	size int64
}

func (c checked) line() string { return fmt.Sprintf("%d %d %s\n", c.sum, c.size, c.name) }

// maxProgram is the longest program with names, in bytes: a host's argument list holds at least
// that.
const maxProgram = 96 << 10

// sums compares files by the host's cksum, and returns which of them are right. asked is false
// where there is no cksum to ask.
func (s *side) sums(files []checked) (good []bool, asked bool) {
	return s.compare(files, "exec cksum --", func(f checked) string { return " " + shell.Quote(f.name) }, lines)
}

// beginnings is sums for files that may have become longer, as logs do.
func (s *side) beginnings(files []checked) (good []bool, asked bool) {
	each := func(f checked) string {
		return fmt.Sprintf("head -c %d -- %s | cksum\n", f.size, shell.Quote(f.name))
	}
	inOrder := func(said string, files []checked) []bool {
		good := make([]bool, len(files))
		for i, f := range files {
			line, rest, _ := strings.Cut(said, "\n")
			good[i], said = line == fmt.Sprintf("%d %d", f.sum, f.size), rest
		}
		return good
	}
	return s.compare(files, "", each, inOrder)
}

// compare runs programs that consist of head and a text for each file, and calls read to find which
// files are right.
func (s *side) compare(files []checked, head string, text func(checked) string, read func(string, []checked) []bool) (good []bool, asked bool) {
	for len(good) < len(files) && s.asks() {
		rest := files[len(good):]
		program := strings.Builder{}
		program.WriteString("command -v cksum || exit 0; " + head)
		var size int64
		n := 0
		for ; n < len(rest) && program.Len() < maxProgram; n++ {
			program.WriteString(text(rest[n]))
			size += rest[n].size
		}
		said, err := s.shell(query{program: program.String(), size: size})
		_, said, found := strings.Cut(said, "\n")
		if err == nil && !found {
			s.cannot("the host has no cksum")
		}
		good = append(good, read(said, rest[:n])...)
	}
	return append(good, make([]bool, len(files)-len(good))...), s.asks()
}

// lines returns which files have their line in the output of cksum: one line a file, none for an
// unreadable one. If it writes a name differently, there is none either.
func lines(said string, files []checked) []bool {
	good := make([]bool, len(files))
	for i, f := range files {
		if rest, found := strings.CutPrefix(said, f.line()); found {
			good[i], said = true, rest
			continue
		}
		fields := strings.SplitN(said, " ", 3)
		if rest, found := strings.CutPrefix(fields[len(fields)-1], f.name+"\n"); found && len(fields) == 3 {
			said = rest
		}
	}
	return good
}

// asks reports whether the host runs commands as far as is known.
func (s *side) asks() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unable == ""
}

// cannot records why the host's commands are not asked any more.
func (s *side) cannot(why string) error {
	s.add(func(t *tally) { t.unable = cmp.Or(t.unable, why) })
	return errors.New(why)
}

// A host needs a moment until a session that was closed makes room for a command.
const (
	maxRoomTries = 40
	roomPause    = 50 * time.Millisecond
)

// shellTimeout is the time for a host to read a program's input, or to answer after it.
const shellTimeout = time.Minute

// query is a program for the host's sh.
type query struct {
	program string
	input   io.Reader    // may be nil
	size    int64        // bytes that it has to read besides its input
	before  func() error // called first, once there is a session for it; may be nil
	user    bool         // it runs a command of the user's, which may take any time
	more    bool         // it runs beside others: that there is no session for it says nothing about the host
}

// shell lets the host's sh run a program in the directory where SFTP begins, and returns its
// output. Text before the program's own output does not belong to it: start-up files print, and an
// account for SFTP only runs something else. If the shell cannot be in the directory that SFTP
// begins in, its names may be those of other files, and nothing is run.
func (s *side) shell(a query) (string, error) {
	if s.home() == "" {
		return "", s.cannot("the host does not say where SFTP begins")
	}
	mark := rand.Text() + "\n"
	say := "echo " + mark
	a.program = say + inside(s.home()) + say + a.program
	begun := &following{before: a.before}
	w := s.early.take()
	if w == nil || !w.run(a, begun) {
		closed := !a.more && s.beside.leaveRoom()
		w = s.wait()
		for tries := 0; !w.run(a, begun) && closed && tries < maxRoomTries; tries++ {
			sched.Until(s.ctx, time.Now().Add(roomPause))
			w = s.wait()
		}
	}
	said, err := string(w.said), w.err
	before, own, ran := strings.Cut(said, mark)
	_, own, there := strings.Cut(own, mark)
	switch {
	case ran && there || s.ctx.Err() != nil:
		return own, err
	case begun.err != nil:
		return "", begun.err
	case errors.Is(err, fleet.ErrOneSession):
		return "", s.cannot("the openssh engine opens one session for each host")
	case errors.Is(err, fleet.ErrNoExec) && a.more:
		return "", err
	case errors.Is(err, fleet.ErrNoExec):
		return "", s.cannot("the host gives no session for its cksum")
	case ran:
		return "", s.cannot("the host runs commands in another directory than SFTP")
	case strings.TrimSpace(before) != "":
		return "", s.cannot(fmt.Sprintf("the host runs no commands for this account: %q", sftp.FirstLine([]byte(before))))
	}
	return "", s.cannot("the host runs no commands for this account")
}

// waiting is a sh of the host that waits for its program: over a long path it takes two round trips
// until it is there.
type waiting struct {
	ctx    context.Context
	cancel context.CancelFunc
	load   func(program string) []byte
	given  chan io.Reader
	input  io.Reader // that was given
	ended  chan struct{}
	said   []byte
	err    error
}

// wait begins a sh of the host.
func (s *side) wait() *waiting {
	line, load := remotesh.Later()
	w := &waiting{load: load, given: make(chan io.Reader, 1), ended: make(chan struct{})}
	w.ctx, w.cancel = context.WithCancel(s.ctx)
	go func() {
		defer close(w.ended)
		w.said, w.err = s.ch.Exec(w.ctx, line, w)
	}()
	return w
}

// Read reads the program and its input, once they are given.
func (w *waiting) Read(p []byte) (int, error) {
	for w.input == nil {
		select {
		case w.input = <-w.given:
		case <-w.ctx.Done():
			return 0, io.EOF
		}
	}
	return w.input.Read(p)
}

// run gives the sh its program, waits for its end, and reports whether it read any of it.
func (w *waiting) run(a query, begun *following) bool {
	defer w.end()
	limit := shellTimeout + time.Duration(a.size/1e7)*time.Second
	late := time.AfterFunc(limit, w.cancel)
	defer late.Stop()
	if a.user {
		late.Stop()
	}
	begun.r = bytes.NewReader(w.load(a.program))
	input := []io.Reader{begun}
	if a.input != nil {
		input = append(input, watchedReader{a.input, func() { late.Reset(limit) }})
	}
	w.given <- io.MultiReader(input...)
	<-w.ended
	return w.input != nil
}

// end ends the sh.
func (w *waiting) end() {
	w.cancel()
	<-w.ended
}

// early holds shells that were begun before their programs were known.
type early struct {
	mu   sync.Mutex
	wait []*waiting
}

// begin makes sure that n shells wait.
func (s *side) begin(n int) {
	s.early.mu.Lock()
	defer s.early.mu.Unlock()
	for s.asks() && len(s.early.wait) < n {
		s.early.wait = append(s.early.wait, s.wait())
	}
}

// take returns a waiting shell, which is then the caller's; nil if there is none.
func (e *early) take() *waiting {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.wait) == 0 {
		return nil
	}
	w := e.wait[0]
	e.wait = e.wait[1:]
	return w
}

// close ends the shells that nobody has taken.
func (e *early) close() {
	for w := e.take(); w != nil; w = e.take() {
		w.end()
	}
}

// inside ends a program that cannot be in a directory. Being in the root proves nothing where it
// has gone there itself: SFTP may call another one so.
func inside(home string) string {
	going := ""
	if home != "/" {
		going = "cd -- " + shell.Quote(home) + " 2>/dev/null; "
	}
	return going + `[ "$(pwd -P)" = ` + shell.Quote(home) + " ] || exit 0\n"
}

// following reads from r once something has come before that.
type following struct {
	before func() error
	err    error
	r      io.Reader
}

func (a *following) Read(p []byte) (int, error) {
	if a.before != nil {
		a.err, a.before = a.before(), nil
	}
	if a.err != nil {
		return 0, a.err
	}
	return a.r.Read(p)
}

// watchedReader calls onRead at every Read.
type watchedReader struct {
	io.Reader
	onRead func()
}

func (t watchedReader) Read(p []byte) (int, error) {
	t.onRead()
	return t.Reader.Read(p)
}
