package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// makePipe makes a named pipe, which must not exist, and opens it for reading. Nobody else may open
// it.
func makePipe(path string) (fd int, err error) {
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return -1, fmt.Errorf("log %s: %w", path, err)
	}
	// Only this way can a pipe without a writer be opened (fifo(7)).
	if fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0); err != nil {
		_ = os.Remove(path)
		return -1, fmt.Errorf("log %s: %w", path, err)
	}
	return fd, nil
}

// Pipe is a Log whose lines are read as they are written: every write wakes the reader.
type Pipe struct {
	Path  string
	Read  *os.File
	write *os.File // until the end, so that the pipe does not end before the program opens it
}

// OpenPipe makes the pipe at path, which must not exist.
func OpenPipe(path string) (*Pipe, error) {
	fd, err := makePipe(path)
	if err != nil {
		return nil, err
	}
	p := &Pipe{Path: path, Read: os.NewFile(uintptr(fd), path)}
	if p.write, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// End lets the reader reach the end once all other writers have closed the pipe.
func (p *Pipe) End() { p.write.Close() }

// Close removes the pipe.
func (p *Pipe) Close() {
	p.Read.Close()
	p.write.Close()
	_ = os.Remove(p.Path)
}

// Pipes are the two pipes of a program: it reads from Stdin whatever is written into In, and its
// output to Stdout comes out of Out.
type Pipes struct{ Stdin, In, Out, Stdout *os.File }

// OpenPipes makes both pipes, by os.Pipe or another maker of pipes.
func OpenPipes(pipe func() (read, write *os.File, err error)) (p Pipes, err error) {
	if p.Stdin, p.In, err = pipe(); err != nil {
		return p, err
	}
	if p.Out, p.Stdout, err = pipe(); err != nil {
		p.Stdin.Close()
		p.In.Close()
	}
	return p, err
}

// HandOver closes our copies of the program's ends.
func (p Pipes) HandOver() {
	p.Stdin.Close()
	p.Stdout.Close()
}
