package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// MaxLog is the most that a program may write to its Log, in bytes. ssh -v writes some 10 KiB about
// one connection, and 1 KiB for every further key exchange.
const MaxLog = 1 << 20

// TooMuch says that a program wrote more, because its peer made it.
func TooMuch(program string) error {
	return fmt.Errorf("the host made %s write more than %d MiB of debug messages; it was ended", filepath.Base(program), MaxLog>>20)
}

// logTick is the interval at which a Log is emptied. Writes of the program wake nobody, so that
// they cost a measured connection next to nothing; a program that writes more than a pipe holds in
// that time (64 KiB, pipe(7)) has to wait.
const logTick = 20 * time.Millisecond

// Log receives the text that a child process writes to a file that it opens by name, as `ssh -E`
// does, without a file: a named pipe that is read up to MaxLog. The peer controls the size of ssh's
// log: SSH_MSG_DEBUG (RFC 4253 section 11.3) could fill a disk.
type Log struct {
	path string
	fd   int
	stop chan struct{}
	rest sync.Once
	read sync.WaitGroup
	// The fields below belong to the reader until it has ended.
	text    []byte
	flooded bool
}

// OpenLog makes the pipe at path, which must not exist.
func OpenLog(path string) (*Log, error) {
	fd, err := makePipe(path)
	if err != nil {
		return nil, err
	}
	return &Log{path: path, fd: fd, stop: make(chan struct{})}, nil
}

// Follow reads until Close. It calls flooded once, when more than MaxLog was written: it should end
// the program, which otherwise stands still from then on.
func (l *Log) Follow(flooded func()) {
	l.read.Go(func() {
		tick := time.NewTicker(logTick)
		defer tick.Stop()
		for l.drain() {
			select {
			case <-tick.C:
			case <-l.stop:
				l.drain()
				return
			}
		}
		flooded()
	})
}

// drain reads the available text, and reports whether it was not too much.
func (l *Log) drain() bool {
	var chunk [16 << 10]byte
	for !l.flooded {
		n, err := unix.Read(l.fd, chunk[:])
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if n <= 0 { // nothing now, or no writer
			return true
		}
		l.flooded = len(l.text)+n > MaxLog
		l.text = append(l.text, chunk[:min(n, MaxLog-len(l.text))]...)
	}
	return false
}

// Rest stops following and returns the text so far. Later text stays in the pipe until Close: a
// program that is left alone writes little, and nothing of ours wakes up for it.
func (l *Log) Rest() (text string) {
	l.rest.Do(func() { close(l.stop) })
	l.read.Wait()
	return string(l.text)
}

// Close removes the pipe and returns the text, and whether that is only the first MaxLog bytes of
// it. The program must have ended.
func (l *Log) Close() (text string, flooded bool) {
	l.Rest()
	l.drain()
	_ = unix.Close(l.fd)
	_ = os.Remove(l.path)
	return string(l.text), l.flooded
}

// Tail keeps the last Max bytes that are written to it: the last words of a program usually say why
// it ended.
type Tail struct {
	Max  int
	mu   sync.Mutex
	text []byte
}

func (t *Tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-t.Max):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-t.Max):]...)
	return len(p), nil
}

func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
