package mux

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"sshpace/internal/sys/safedir"
)

// Listener is the socket of a master. Closing it removes the socket, unless another one has taken
// its place.
type Listener struct {
	*net.UnixListener
	Path  string
	info  os.FileInfo
	close sync.Once
}

// Listen makes the socket of a master at a path, 0600, in a directory that nobody else can change.
// A dead socket of ours is replaced, anything else there is an *Error.
func Listen(path string) (*Listener, error) {
	dir, unlock, err := locked(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer unlock()
	path = filepath.Join(dir.Path(), filepath.Base(path))
	if len(path) >= len(syscall.RawSockaddrUnix{}.Path) { // nobody could connect to it
		return nil, &Error{path, "cannot be made: its name is too long for a socket", syscall.ENAMETOOLONG}
	}
	if err := vacate(path); err != nil {
		return nil, err
	}
	return listenAt(path)
}

// Sweep removes the dead sockets of ours from a directory, which it makes if necessary.
func Sweep(directory string) error {
	dir, unlock, err := locked(directory)
	if err != nil {
		return err
	}
	defer unlock()
	names, err := dir.Entries("")
	for _, name := range names {
		_ = vacate(filepath.Join(dir.Path(), name)) // others are not ours to remove
	}
	return err
}

// locked opens a directory for one process at a time: others may find the same dead socket.
func locked(path string) (dir *safedir.Directory, unlock func(), err error) {
	if dir, err = safedir.Make(path); err != nil {
		return nil, nil, err
	}
	lock, err := dir.Open(".")
	if err == nil {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err == nil {
			return dir, func() { lock.Close(); dir.Close() }, nil
		}
		lock.Close()
	}
	dir.Close()
	return nil, nil, err
}

// ErrLives says that a master lives at a path.
var ErrLives = fmt.Errorf("%w: a master that lives", os.ErrExist)

// Taken returns why no master can listen at a path; nil where there is nothing, or a dead socket of
// ours.
func Taken(path string) error {
	_, err := taken(path)
	return err
}

func taken(path string) (dead bool, err error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case info.Mode().Type() != os.ModeSocket || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid():
		return false, &Error{path, "is in the way: it is no socket of ours", os.ErrExist}
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return false, &Error{path, "lives already", ErrLives}
	case !errors.Is(err, syscall.ECONNREFUSED):
		return false, &Error{path, "is unusable: " + reason(err), err}
	}
	return true, nil
}

// vacate removes a dead socket of ours.
func vacate(path string) error {
	dead, err := taken(path)
	if dead {
		return os.Remove(path)
	}
	return err
}

// listenAt makes the socket under another name first: nobody finds one that is not ready.
func listenAt(path string) (*Listener, error) {
	name := filepath.Join(filepath.Dir(path), ".sshpace-"+rand.Text()[:8]) // short: see unix(7)
	address := &net.UnixAddr{Name: name, Net: "unix"}
	l, err := net.ListenUnix("unix", address)
	if err != nil {
		return nil, &Error{path, "cannot be made: " + reason(err), err}
	}
	l.SetUnlinkOnClose(false)
	defer os.Remove(name)
	made := &Listener{UnixListener: l, Path: path}
	if err = os.Chmod(name, 0o600); err == nil {
		err = os.Link(name, path)
	}
	if err == nil {
		made.info, err = os.Lstat(path)
	}
	if err != nil {
		l.Close()
		return nil, &Error{path, "cannot be made: " + reason(err), err}
	}
	return made, nil
}

// Close ends the listener.
func (l *Listener) Close() (err error) {
	l.close.Do(func() {
		if now, e := os.Lstat(l.Path); e == nil && os.SameFile(now, l.info) {
			err = os.Remove(l.Path)
		}
		err = errors.Join(err, l.UnixListener.Close())
	})
	return err
}
