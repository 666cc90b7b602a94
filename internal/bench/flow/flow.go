//go:build linux

package flow

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/shell"
)

// chunk is the most that one system call moves; pipes are widened to it.
const chunk = 1 << 20

// Main is the program of a flow process: args are
//
//	sink COUNTER
//	source COUNTER zero|random LIMIT
//	hold FILE
//
// A source writes LIMIT bytes, or for ever where LIMIT is 0, to stdout; a sink
// reads stdin to its end. Hold says in FILE which process it is, and whose child,
// and keeps its stdin and stdout open until its parent ends.
func Main(args []string, stdin, stdout *os.File) error {
	if len(args) < 2 {
		return errors.New("flow: want sink COUNTER, source COUNTER zero|random LIMIT or hold FILE")
	}
	if args[0] == "hold" {
		return hold(args[1])
	}
	counter, err := openCounter(args[1])
	if err != nil {
		return err
	}
	defer counter.Close()
	defer counter.finish()
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

// Command returns the command line of a flow process with these arguments, for any login shell;
// program holds the words that lead to Main.
func Command(program []string, args ...string) string {
	return "exec " + shell.Line(slices.Concat(program, args)...)
}

// Process is a flow process: its command line, and its counter.
type Process struct {
	*Counter
	Argv []string
	path string
}

// New returns a process with a counter in a new file; program holds the words that lead to Main,
// and args the other arguments.
func New(program []string, path string, args ...string) (*Process, error) {
	counter, err := CreateCounter(path)
	if err != nil {
		return nil, err
	}
	return &Process{counter, slices.Concat(program, args[:1], []string{path}, args[1:]), path}, nil
}

// Command returns the command line for any login shell.
func (p *Process) Command() string { return Command(p.Argv) }

// Close releases the counter, and its file.
func (p *Process) Close() error { return errors.Join(p.Counter.Close(), os.Remove(p.path)) }

// Near is a flow in this process, at our end of a pipe, which it closes.
type Near struct {
	*Counter
	Ended chan struct{} // closed at the end of its stream
}

// Source writes limit bytes.
func Source(pipe *os.File, random bool, limit int64) *Near {
	return near(pipe, func(c *Counter) error { return source(c, pipe, random, limit) })
}

// Sink makes all bytes vanish.
func Sink(pipe *os.File) *Near {
	return near(pipe, func(c *Counter) error { return sink(c, pipe) })
}

// near begins a flow. A failure shows in the counter.
func near(pipe *os.File, do func(*Counter) error) *Near {
	n := &Near{&Counter{page: &page{}}, make(chan struct{})}
	go func() {
		_ = do(n.Counter)
		pipe.Close()
		close(n.Ended)
	}()
	return n
}

// sink makes everything that it reads vanish: it splices a pipe into /dev/null, which moves pages
// without looking at them.
func sink(counter *Counter, in *os.File) error {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	from, to := int(in.Fd()), int(null.Fd())
	pace, ok := newPacer(Resize(from, chunk))
	for ok {
		n, err := splice(from, to, chunk)
		switch {
		case err == unix.EAGAIN, err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("splice into %s: %w", os.DevNull, err)
		case n == 0:
			return nil
		}
		counter.add(n)
		pace.after(n)
	}
	return drain(counter, in)
}

// drain is a sink for anything but a wide pipe.
func drain(counter *Counter, in io.Reader) error {
	buffer := make([]byte, 256<<10)
	for {
		n, err := in.Read(buffer)
		counter.add(n)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
	}
}

// source writes the same buffer again and again. Its pages are lent to the pipe (vmsplice(2)), so
// that only the reader copies them.
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
	pace, ok := newPacer(Resize(int(out.Fd()), chunk))
	if !ok {
		return write(counter, out, buffer, limit)
	}
	for sent := int64(0); more(sent, limit); {
		n, err := lend(int(out.Fd()), next(buffer, sent, limit))
		switch {
		case err == unix.EAGAIN, err == unix.EINTR:
		case err == unix.EPIPE:
			return nil // the other side has seen enough
		case err != nil:
			return fmt.Errorf("lend pages: %w", err)
		}
		sent += int64(n)
		counter.add(n)
		pace.after(n)
	}
	return nil
}

// write is a source for anything but a wide pipe.
func write(counter *Counter, out io.Writer, buffer []byte, limit int64) error {
	for sent := int64(0); more(sent, limit); {
		n, err := out.Write(next(buffer, sent, limit))
		sent += int64(n)
		counter.add(n)
		if errors.Is(err, unix.EPIPE) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
	}
	return nil
}

func more(sent, limit int64) bool { return limit == 0 || sent < limit }

// next returns the next bytes to send: the buffer, or the rest up to the limit.
func next(buffer []byte, sent, limit int64) []byte {
	if left := limit - sent; limit > 0 && left < int64(len(buffer)) {
		return buffer[:left]
	}
	return buffer
}
