//go:build linux

// Package flow moves payload at next to no cost: a sink that makes bytes vanish and counts them,
// and a source that makes them up. Each runs as a process at either end of an SSH connection and
// reports its progress through a shared page of memory, so that reading it costs nothing.
package flow

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// pageSize of the shared file.
const pageSize = 4096

// page is the layout of the shared memory. All fields are used atomically.
type page struct {
	bytes uint64 // moved so far
	cost  uint64 // CPU time in ns, set at the end
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
	if err := f.Truncate(pageSize); err != nil {
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
	if err != nil || info.Size() != pageSize {
		return nil, fmt.Errorf("map counter %s: not a counter file", f.Name())
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, pageSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map counter: %w", err)
	}
	return &Counter{memory: memory, page: (*page)(unsafe.Pointer(&memory[0]))}, nil
}

// Close unmaps the counter.
func (c *Counter) Close() error { return unix.Munmap(c.memory) }

// Bytes returns how many bytes the flow has moved.
func (c *Counter) Bytes() int64 { return int64(atomic.LoadUint64(&c.page.bytes)) }

// Cost returns the CPU time of the flow's process; 0 until its stream has ended.
func (c *Counter) Cost() time.Duration { return time.Duration(atomic.LoadUint64(&c.page.cost)) }

// finish records the CPU time of the process.
func (c *Counter) finish() {
	var used unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &used) == nil {
		atomic.StoreUint64(&c.page.cost, uint64(used.Utime.Nano()+used.Stime.Nano()))
	}
}

func (c *Counter) add(n int) { atomic.AddUint64(&c.page.bytes, uint64(n)) }
