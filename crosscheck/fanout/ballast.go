//go:build linux

package main

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ballast is a file as large as all copies together, that shrinks as they grow. A
// virtual machine gives the memory that was free for seconds back to its host, and whoever
// writes to it next waits for that host: 2 ms of system time for every MB instead of
// 0.4, the same for every tool, and ever another in every run.
type ballast struct {
	file       *os.File
	size       int64
	quit, done chan struct{}
}

// Of the ballast, so much is given up before a copy needs it, and so often it is looked at.
const (
	ballastAhead = 512 << 20
	ballastEvery = 10 * time.Millisecond
)

// newBallast writes the ballast. The caller drops it.
func newBallast(path string, size int64) (*ballast, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	b := &ballast{f, size, make(chan struct{}), make(chan struct{})}
	used, err := usedOn(f)
	block := make([]byte, 1<<20)
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block)
	}
	go b.shrink(used)
	if err != nil {
		err = errors.Join(err, b.drop())
	}
	return b, err
}

// shrink keeps what is used beside the ballast, and the ballast, together at its size.
func (b *ballast) shrink(before int64) {
	defer close(b.done)
	tick := time.NewTicker(ballastEvery)
	defer tick.Stop()
	left := b.size
	for {
		select {
		case <-b.quit:
			return
		case <-tick.C:
		}
		used, err := usedOn(b.file)
		if err != nil {
			return
		}
		copied := used - before - left
		if keep := max(0, b.size-copied-ballastAhead); keep < left {
			if b.file.Truncate(keep) != nil {
				return
			}
			left = keep
		}
	}
}

// drop removes the ballast.
func (b *ballast) drop() error {
	close(b.quit)
	<-b.done
	return errors.Join(b.file.Close(), os.Remove(b.file.Name()))
}

// usedOn is how many bytes a file's filesystem holds.
func usedOn(f *os.File) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &s); err != nil {
		return 0, err
	}
	return int64(s.Blocks-s.Bfree) * s.Bsize, nil
}
