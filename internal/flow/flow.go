package flow

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// chunk is how much one system call moves at most; pipes are widened to it.
const chunk = 1 << 20

// Main is the program of a flow process: args are
//
//	sink COUNTER
//	source COUNTER zero|random LIMIT
//
// A source writes LIMIT bytes, or for ever where LIMIT is 0, to stdout; a sink
// reads stdin to its end.
func Main(args []string, stdin, stdout *os.File) error {
	if len(args) < 2 {
		return errors.New("flow: want sink COUNTER or source COUNTER zero|random LIMIT")
	}
	counter, err := openCounter(args[1])
	if err != nil {
		return err
	}
	defer counter.Close()
	switch {
	case args[0] == "sink" && len(args) == 2:
		return sink(counter, stdin)
	case args[0] == "source" && len(args) == 4:
		limit, err := strconv.ParseInt(args[3], 10, 64)
		if err != nil || limit < 0 {
			return fmt.Errorf("flow: limit %q: want a number of bytes", args[3])
		}
		return source(counter, stdout, args[2] == "random", limit)
	}
	return fmt.Errorf("flow: unknown arguments %q", args)
}

// sink makes everything that it reads vanish: it splices a pipe into
// /dev/null, which moves pages without looking at them.
func sink(counter *Counter, in *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	from, to := int(in.Fd()), int(null.Fd())
	widen(from)
	counter.begin()
	for !counter.stopped() {
		n, err := unix.Splice(from, nil, to, nil, chunk, unix.SPLICE_F_MOVE)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EINVAL: // stdin is no pipe: sshd built with socket pairs
			return drain(counter, in)
		case err != nil:
			return fmt.Errorf("splice into %s: %w", os.DevNull, err)
		case n == 0:
			return nil
		}
		counter.add(int(n))
	}
	return drain(counter, in)
}

// drain reads to the end and keeps the tail.
func drain(counter *Counter, in io.Reader) error {
	buffer := make([]byte, 256<<10)
	var tail []byte
	for {
		n, err := in.Read(buffer)
		counter.add(n)
		tail = append(tail, buffer[max(0, n-pageSize):n]...)
		tail = tail[max(0, len(tail)-pageSize):]
		if err == io.EOF {
			counter.setTail(tail)
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// source writes the same buffer again and again. Its pages are lent to the
// pipe (vmsplice(2)), so that only the reader copies them.
func source(counter *Counter, out *os.File, random bool, limit int64) error {
	buffer, err := unix.Mmap(-1, 0, chunk, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return fmt.Errorf("source buffer: %w", err)
	}
	if random {
		if _, err := rand.Read(buffer); err != nil {
			return err
		}
	} else {
		clear(buffer) // touch the pages once
	}
	write := lend
	if !widen(int(out.Fd())) {
		write = unix.Write
	}
	counter.begin()
	for sent := int64(0); !counter.stopped() && (limit == 0 || sent < limit); {
		part := buffer
		if left := limit - sent; limit > 0 && left < int64(len(part)) {
			part = part[:left]
		}
		n, err := write(int(out.Fd()), part)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EPIPE:
			return nil // the other side has seen enough
		case err != nil:
			return fmt.Errorf("write: %w", err)
		}
		sent += int64(n)
		counter.add(n)
	}
	return nil
}

// lend puts the pages of b into the pipe fd.
func lend(fd int, b []byte) (int, error) {
	iov := []unix.Iovec{{Base: &b[0]}}
	iov[0].SetLen(len(b))
	return unix.Vmsplice(fd, iov, 0)
}

// widen enlarges a pipe's buffer, so that the flow wakes up less often, and
// reports whether fd is a pipe at all. An ordinary user may be refused.
func widen(fd int) bool {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETPIPE_SZ, 0); err != nil {
		return false
	}
	_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETPIPE_SZ, chunk)
	return true
}
