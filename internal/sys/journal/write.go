package journal

import (
	"bytes"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/fault"
)

// write and create are the flags of a journal for its writer, and of a new one.
const (
	write  = os.O_RDWR | os.O_APPEND
	create = os.O_CREATE | os.O_EXCL
)

// New makes a journal, which must not exist, for its one writer.
func New(path string) (*os.File, error) { return locked(os.OpenFile(path, write|create, 0o600)) }

// Resume opens a journal for its one writer, which reads it and calls Continue.
func Resume(path string) (*os.File, error) { return locked(os.OpenFile(path, write, 0)) }

// locked keeps a second writer out until f is closed (flock(2)). File systems without locks are
// fine.
func locked(f *os.File, err error) (*os.File, error) {
	if err == nil && errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		err = &fault.Error{What: f.Name() + " is being written by another sshpace", Hint: "wait for it, or choose another file", Code: fault.Misuse}
		f.Close()
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Written reports whether f is open for its writer, who lives.
func Written(f *os.File) bool {
	err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	}
	return errors.Is(err, unix.EWOULDBLOCK)
}

// Continue makes a journal ready for another line: it removes the last line if cut reports that it
// is one, and ends a last line that has no end.
func Continue(f *os.File, cut bool) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, MaxLine+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	keep := size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1
	switch {
	case keep == size:
		return nil
	case !cut:
		_, err := f.Write([]byte("\n"))
		return err
	}
	return f.Truncate(keep)
}
