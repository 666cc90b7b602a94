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

// MaxLog is how much a program may write to its Log, in bytes. What ssh -v says
// of one connection is some 10 KiB, and 1 KiB for every further key exchange.
const MaxLog = 1 << 20

// TooMuch says that a program wrote more, at the will of its peer.
func TooMuch(program string) error {
	return fmt.Errorf("the host made %s write more than %d MiB of debug messages; it was ended", filepath.Base(program), MaxLog>>20)
}

// logTick is how often a Log is emptied. The program's writes wake nobody, so
// that they cost a measured connection next to nothing; one that writes more
// than a pipe holds in that time (64 KiB, pipe(7)) has to wait.
const logTick = 20 * time.Millisecond

// Log takes what a child process writes to a file that it opens by name, as
// `ssh -E` does, without a file: a named pipe that is read up to MaxLog. What
// ends up in ssh's log is in the hands of its peer, who can fill a disk with
// SSH_MSG_DEBUG (RFC 4253 section 11.3).
type Log struct {
	path string
	fd   int
	stop chan struct{}
	rest sync.Once
	read sync.WaitGroup
	// The rest belongs to the reader until it has been waited for.
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

// Follow reads until Close. It calls flooded once, when more than MaxLog was
// written: to end the program, which otherwise stands still from then on.
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

// drain takes what there is now, and reports whether it was not too much.
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

// Rest stops following and returns what was written so far. What comes later
// stays in the pipe until Close: a program that is left alone writes little, and
// nothing of ours wakes up for it.
func (l *Log) Rest() (text string) {
	l.rest.Do(func() { close(l.stop) })
	l.read.Wait()
	return string(l.text)
}

// Close removes the pipe and returns what was written, and whether that is only
// the first MaxLog bytes of it. The program must have ended.
func (l *Log) Close() (text string, flooded bool) {
	l.Rest()
	l.drain()
	_ = unix.Close(l.fd)
	_ = os.Remove(l.path)
	return string(l.text), l.flooded
}

// Tail keeps the last Max bytes of what is written to it: what a program says last
// is why it ended.
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
