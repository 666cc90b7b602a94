//go:build linux

package flow

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Payload is a full pipe whose pages are lent to other pipes again and again (tee(2)): nothing is
// copied until somebody reads them.
type Payload struct {
	read, write *os.File
	descriptor  int    // of read
	pages       []byte // in the pipe
}

// NewPayload fills the pipe; random bytes look like encrypted data to a compressor. Zeros are one
// page again and again: like those of /dev/zero, they cost the reader no access to memory.
func NewPayload(random bool) (*Payload, error) {
	read, write, err := Pipe()
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	p := &Payload{read: read, write: write, descriptor: Descriptor(read)}
	if err := p.fill(random); err != nil {
		p.Close()
		return nil, fmt.Errorf("payload: %w", err)
	}
	return p, nil
}

func (p *Payload) fill(random bool) (err error) {
	pipe, size := Descriptor(p.write), pageSize
	room := max(Resize(pipe, chunk), pageSize)
	if random {
		size = room
	}
	if p.pages, err = unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	clear(p.pages)
	if random {
		_, err = rand.Read(p.pages)
	}
	for filled := 0; filled < room && err == nil; filled += size {
		_, err = lend(pipe, p.pages)
	}
	return err
}

// Close frees the memory.
func (p *Payload) Close() {
	p.read.Close()
	p.write.Close()
	_ = unix.Munmap(p.pages)
}

// Feed puts up to n bytes into a pipe without copying or waiting, and returns how many there was
// room for.
func (p *Payload) Feed(pipe int, n int64) (fed int64, err error) {
	for fed < n {
		moved, _, errno := unix.RawSyscall6(unix.SYS_TEE, uintptr(p.descriptor), uintptr(pipe), uintptr(n-fed), unix.SPLICE_F_NONBLOCK, 0, 0)
		switch {
		case errno == unix.EAGAIN, errno == unix.EINTR, errno == 0 && moved == 0:
			return fed, nil
		case errno != 0:
			return fed, errno
		}
		fed += int64(moved)
	}
	return fed, nil
}

// Drain takes up to n bytes out of a pipe without copying or waiting, into null, which is
// /dev/null. ended reports that nobody will write any more.
func Drain(pipe, null int, n int64) (moved int64, ended bool, err error) {
	k, err := splice(pipe, null, int(min(n, chunk)))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR) {
		return 0, false, nil
	}
	return int64(k), k == 0, err
}

// Pipe is a pipe that Go's poller does not watch: with that of os.Pipe a thread of ours wakes up
// whenever somebody makes it full or empty, in the middle of a timed operation. Read and Write of
// its files wait in the system.
func Pipe() (read, write *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

// Resize changes the buffer size of a pipe if permitted, and returns its size; 0 where the file is
// not a pipe.
func Resize(pipe, size int) int {
	if now, err := unix.FcntlInt(uintptr(pipe), unix.F_SETPIPE_SZ, size); err == nil {
		return now
	}
	now, err := unix.FcntlInt(uintptr(pipe), unix.F_GETPIPE_SZ, 0)
	if err != nil {
		return 0
	}
	return now
}

// Unlimited reports whether the total size of pipes is not limited for this process (pipe(7),
// pipe-user-pages-soft): it has one of two capabilities.
func Unlimited() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return false
	}
	return sets[0].Effective&(1<<unix.CAP_SYS_RESOURCE|1<<unix.CAP_SYS_ADMIN) != 0
}

// Descriptor returns the file descriptor of a pipe and keeps its deadlines, which os.File.Fd would
// remove.
func Descriptor(pipe *os.File) (fd int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return -1
	}
	_ = raw.Control(func(p uintptr) { fd = int(p) })
	return fd
}
