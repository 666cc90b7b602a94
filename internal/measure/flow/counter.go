//go:build linux

// Package flow moves payload at next to no cost: a sink that makes bytes
// vanish and counts them, and a source that makes them up. Both run as
// processes of their own at either end of an SSH connection and tell what they
// did through a shared page of memory, so that reading it costs them nothing.
package flow

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize of the shared file: one page of counters, one of tail text.
const pageSize = 4096

// page is the layout of the shared memory. All fields are used atomically.
type page struct {
	ready  uint64 // 1 once the process is about to move data
	pid    uint64
	parent uint64 // of pid: the server's process of this connection
	bytes  uint64 // moved so far
	stop   uint64 // set by the reader: a source ends, a sink looks for the tail
	tail   uint64 // length of the tail text, set at the end
	cost   uint64 // CPU time in ns, set at the end
}

// Counter is a view of a flow's progress, shared between processes by a file.
type Counter struct {
	memory []byte
	page   *page
}

// CreateCounter makes the file (0600, it must not exist) and maps it.
func CreateCounter(path string) (*Counter, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(2 * pageSize); err != nil {
		return nil, fmt.Errorf("create counter: %w", err)
	}
	return mapCounter(f)
}

// openCounter maps an existing file.
func openCounter(path string) (*Counter, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open counter: %w", err)
	}
	defer f.Close()
	return mapCounter(f)
}

func mapCounter(f *os.File) (*Counter, error) {
	info, err := f.Stat()
	if err != nil || info.Size() != 2*pageSize {
		return nil, fmt.Errorf("map counter %s: not a counter file", f.Name())
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, 2*pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map counter: %w", err)
	}
	return &Counter{memory: memory, page: (*page)(unsafe.Pointer(&memory[0]))}, nil
}

// Close unmaps the counter.
func (c *Counter) Close() error { return unix.Munmap(c.memory) }

// Ready reports whether the flow is about to move data.
func (c *Counter) Ready() bool { return atomic.LoadUint64(&c.page.ready) == 1 }

// Bytes returns how many bytes the flow has moved.
func (c *Counter) Bytes() int64 { return int64(atomic.LoadUint64(&c.page.bytes)) }

// Pid is the process of the flow, once it is ready.
func (c *Counter) Pid() int { return int(atomic.LoadUint64(&c.page.pid)) }

// Parent is the parent of the flow's process when it started: on a server, the
// process that carries the connection.
func (c *Counter) Parent() int { return int(atomic.LoadUint64(&c.page.parent)) }

// Stop asks a source to end its stream, and a sink to keep from now on the end
// of what it reads.
func (c *Counter) Stop() { atomic.StoreUint64(&c.page.stop, 1) }

func (c *Counter) stopped() bool { return atomic.LoadUint64(&c.page.stop) == 1 }

// Cost is the CPU time that the flow's process took; 0 until its stream has ended.
func (c *Counter) Cost() time.Duration { return time.Duration(atomic.LoadUint64(&c.page.cost)) }

// finish notes what the process took.
func (c *Counter) finish() {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		atomic.StoreUint64(&c.page.cost, uint64(used.Utime.Nano()+used.Stime.Nano()))
	}
}

// Tail returns the last bytes, at most 4096, that a sink read after Stop; empty
// until the stream has ended.
func (c *Counter) Tail() []byte {
	n := atomic.LoadUint64(&c.page.tail)
	return append([]byte(nil), c.memory[pageSize:pageSize+min(n, pageSize)]...)
}

func (c *Counter) begin() {
	atomic.StoreUint64(&c.page.pid, uint64(os.Getpid()))
	atomic.StoreUint64(&c.page.parent, uint64(os.Getppid()))
	atomic.StoreUint64(&c.page.ready, 1)
}

func (c *Counter) add(n int) { atomic.AddUint64(&c.page.bytes, uint64(n)) }

func (c *Counter) setTail(tail []byte) {
	n := copy(c.memory[pageSize:], tail)
	atomic.StoreUint64(&c.page.tail, uint64(n))
}
