package transport

import (
	"bytes"
	"errors"
	"io"
)

// input reads a connection. What it returns is valid until the next read, unless lend is called
// before that. While it waits for a packet to begin it has memory for a short one only: many
// connections wait, and few have much to read at a time.
type input struct {
	from io.Reader
	idle []byte // memory of one that waits
	buf  []byte
	r, w int  // the unread part of buf
	lent bool // the other part is in use
}

const (
	// waiting is the memory of a connection that waits: more than the messages of a short command.
	waiting = 512
	// longest is the longest line before the key exchange.
	longest = 4096
)

func newInput(from io.Reader) *input { return &input{from: from, idle: make([]byte, longest)} }

// buffered returns how many bytes can be read without waiting.
func (in *input) buffered() int { return in.w - in.r }

// peek returns the next n bytes, and take reads past them.
func (in *input) peek(n int) ([]byte, error) {
	if err := in.await(n); err != nil {
		if err == io.EOF && in.buffered() > 0 {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return in.buf[in.r : in.r+n], nil
}

func (in *input) take(n int) { in.r += n }

// lend leaves what was read so far as it is.
func (in *input) lend() { in.lent, in.idle = true, make([]byte, waiting) }

// await waits for n bytes.
func (in *input) await(n int) error {
	if n <= in.buffered() {
		return nil
	}
	if in.lent || in.buffered() == 0 || in.r+n > len(in.buf) {
		in.move(in.room(n))
	}
	came, err := io.ReadAtLeast(in.from, in.buf[in.w:], in.r+n-in.w)
	in.w += came
	return err
}

// room returns memory for n bytes from the unread ones on.
func (in *input) room(n int) []byte {
	switch {
	case in.buffered() == 0 && n <= len(in.idle):
		return in.idle
	case !in.lent && n <= len(in.buf):
		return in.buf
	case n <= bulkSize:
		return withBulk(nil, n)[:bulkSize]
	}
	return make([]byte, n)
}

// move moves the unread bytes.
func (in *input) move(to []byte) {
	old := in.buf
	in.w = copy(to, old[in.r:in.w])
	in.r, in.buf = 0, to
	if !in.lent && cap(old) > 0 && &old[0] != &to[0] {
		giveBulk(old)
	}
	in.lent = false
}

// line reads a line with its end. Of one that is too long or has no end it returns the beginning.
func (in *input) line() ([]byte, error) {
	for {
		if end := bytes.IndexByte(in.buf[in.r:in.w], '\n'); end >= 0 {
			line := in.buf[in.r : in.r+end+1]
			in.take(len(line))
			return line, nil
		}
		n := in.buffered()
		err := errLong
		if n < longest {
			err = in.await(n + 1)
		}
		if err != nil {
			return in.buf[in.r:in.w], err
		}
	}
}

var errLong = errors.New("ssh: a line before the key exchange is too long")
