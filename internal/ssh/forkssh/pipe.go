package forkssh

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe is where an ssh logs.
type pipe struct {
	mu   *sync.Mutex       // held while lines are taken
	line func(line string) // is told of each

	r, w *os.File
	raw  syscall.RawConn // nil where ssh cannot open it
	done sync.WaitGroup
	part []byte // of a line whose end has not come
}

// open makes the pipe. The name is one under which another process of the same
// user can open it: ssh closes all inherited descriptors at its start, so it
// cannot be handed one. Where there is no /proc the name is "".
func (p *pipe) open() (path string, err error) {
	if p.r, p.w, err = os.Pipe(); err != nil {
		return "", fmt.Errorf("log of ssh: %w", err)
	}
	path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), p.w.Fd())
	raw, rawErr := p.r.SyscallConn()
	if _, err := os.Stat(path); err != nil || rawErr != nil {
		p.r.Close()
		p.w.Close()
		return "", nil
	}
	p.raw = raw
	p.done.Go(p.read)
	return path, nil
}

// close ends the reader. A ControlPersist master may keep the pipe open; what ssh has
// written is read in any case, however late the reader is.
func (p *pipe) close() {
	if p.raw == nil {
		return
	}
	p.w.Close()
	p.r.SetReadDeadline(time.Now().Add(strayGrace))
	p.done.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.catchUp()
	p.line(string(p.part))
	p.r.Close()
}

// read takes lines until all writers have closed the pipe.
func (p *pipe) read() {
	_ = p.raw.Read(func(fd uintptr) (ended bool) { // false waits until there is more
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.drain(fd)
	})
}

// catchUp reads what was written by now. mu is held.
func (p *pipe) catchUp() {
	if p.raw != nil {
		_ = p.raw.Control(func(fd uintptr) { p.drain(fd) }) // a closed pipe has said all
	}
}

// drain takes all that was written so far; ended means that nothing can follow.
func (p *pipe) drain(fd uintptr) (ended bool) {
	buffer := make([]byte, maxLine)
	for {
		n, err := syscall.Read(int(fd), buffer)
		switch {
		case n > 0:
			p.take(buffer[:n])
		case err == syscall.EINTR:
		default:
			return err != syscall.EAGAIN
		}
	}
}

// take reads the lines that are whole. One that is too long is read in pieces.
func (p *pipe) take(data []byte) {
	p.part = append(p.part, data...)
	for {
		line, rest, whole := bytes.Cut(p.part, []byte("\n"))
		if !whole && len(p.part) < maxLine {
			return
		}
		p.line(string(line))
		p.part = rest
	}
}
