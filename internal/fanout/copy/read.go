package copy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"sshpace/internal/ssh/sftp"
)

// piece is a requested part of a file.
type piece struct {
	buf  *chunk
	n    int
	at   int64
	wait sftp.PendingRead
}

// read reads a file from offset to size, with many requests ahead of their replies, and calls use
// for the pieces in order.
func (s *side) read(f *sftp.File, offset, size int64, use func(p []byte, at int64) error) error {
	var open []piece
	defer func() {
		for _, p := range open {
			p.wait.Wait()
			buffers.Put(p.buf)
		}
	}()
	for next := offset; ; {
		for next < size && s.ctx.Err() == nil {
			n := int(min(size-next, int64(s.Limit.piece(s.client.Chunk()))))
			if len(open) > 0 && !s.client.HasRoom(n) || len(open) > s.inFlight()/sftp.MaxChunk { // or what has come is not used yet
				break
			}
			buf := buffers.Get().(*chunk)
			s.Limit.wait(s.ctx, n)
			open = append(open, piece{buf, n, next, f.ReadAt(buf[:n], next)})
			next += int64(n)
		}
		if len(open) == 0 {
			return context.Cause(s.ctx)
		}
		p := open[0]
		open = open[1:]
		err := p.take(f, size)
		if _, short := errors.AsType[*shortError](err); err == nil || short && p.n > 0 {
			err = cmp.Or(use(p.buf[:p.n], p.at), err)
		}
		buffers.Put(p.buf)
		if err != nil {
			return err
		}
	}
}

// shortError says that a file is shorter than the host said.
type shortError struct{ ends, size int64 }

func (e *shortError) Error() string { return fmt.Sprintf("ends after %d of %d bytes", e.ends, e.size) }

// take waits for the whole piece. A server may send less than requested.
func (p *piece) take(f *sftp.File, size int64) error {
	got, err := p.wait.Wait()
	for err == nil && got < p.n {
		var more int
		more, err = f.ReadAt(p.buf[got:p.n], p.at+int64(got)).Wait()
		got += more
	}
	if errors.Is(err, io.EOF) && isStatus(err) {
		p.n = got
		return &shortError{p.at + int64(got), size}
	}
	return err
}
