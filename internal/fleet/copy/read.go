package copy

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sshpace/internal/ssh/sftp"
)

// read reads a file from offset to size, with many requests ahead of their
// replies, and hands the pieces on in order.
func (s *side) read(f *sftp.File, offset, size int64, use func(p []byte, at int64) error) error {
	r := &reading{side: s, file: f, size: size, next: offset}
	defer r.release()
	for {
		for len(r.open) < ahead/2 && r.next < size && s.ctx.Err() == nil {
			r.ask()
		}
		if len(r.open) == 0 {
			return context.Cause(s.ctx)
		}
		if err := r.take(use); err != nil {
			r.drain()
			return err
		}
	}
}

// reading is a file that is being read.
type reading struct {
	*side
	file *sftp.File
	size int64
	next int64 // what is asked for next
	open []piece
	free []*chunk
}

type piece struct {
	buf  *chunk
	n    int
	at   int64
	wait sftp.PendingRead
}

func (r *reading) ask() {
	var buf *chunk
	if last := len(r.free) - 1; last >= 0 {
		buf, r.free = r.free[last], r.free[:last]
	} else {
		buf = buffers.Get().(*chunk)
	}
	n := int(min(r.size-r.next, int64(min(r.client.Chunk(), len(buf)))))
	r.Limit.wait(r.ctx, n)
	r.open = append(r.open, piece{buf, n, r.next, r.file.ReadAt(buf[:n], r.next)})
	r.next += int64(n)
}

// take waits for the oldest piece. A server may send less than was asked for.
func (r *reading) take(use func([]byte, int64) error) error {
	p := r.open[0]
	r.open = r.open[1:]
	defer func() { r.free = append(r.free, p.buf) }()
	got, err := p.wait.Wait()
	for err == nil && got < p.n {
		var more int
		more, err = r.file.ReadAt(p.buf[got:p.n], p.at+int64(got)).Wait()
		got += more
	}
	if errors.Is(err, io.EOF) && isStatus(err) {
		return fmt.Errorf("ends after %d of %d bytes", p.at+int64(got), r.size)
	}
	if err != nil {
		return err
	}
	return use(p.buf[:p.n], p.at)
}

func (r *reading) drain() {
	for _, p := range r.open {
		p.wait.Wait()
		r.free = append(r.free, p.buf)
	}
	r.open = nil
}

func (r *reading) release() {
	r.drain()
	for _, buf := range r.free {
		buffers.Put(buf)
	}
}
