package forkssh

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipe receives the log of an ssh.
type pipe struct {
	mu   *sync.Mutex       // held while lines are taken
	line func(line string) // called for each

	r, w *os.File
	raw  syscall.RawConn // nil where ssh cannot open it
	done sync.WaitGroup
	part []byte // beginning of an unfinished line
}

// open makes the pipe. Another process of the same user can open it under this name: ssh closes all
// inherited descriptors at its start, so it cannot inherit one. If there is no /proc the name is
// "".
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

// close ends the reader. A ControlPersist master may keep the pipe open; all of ssh's text is read
// in any case, however late the reader is.
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

// catchUp reads the text so far. mu is held.
func (p *pipe) catchUp() {
	if p.raw != nil {
		_ = p.raw.Control(func(fd uintptr) { p.drain(fd) }) // a closed pipe is complete
	}
}

// drain reads all text so far; ended means that nothing can follow.
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

// take handles the complete lines. One that is too long is read in pieces.
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
