package mux

import (
	"crypto/rand"
	"errors"
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
	dir, err := safedir.Make(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	lock, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil { // others may find the same dead socket
		return nil, err
	}
	path = filepath.Join(dir.Path(), filepath.Base(path))
	if err := vacate(path); err != nil {
		return nil, err
	}
	return listenAt(path)
}

// vacate removes a dead socket of ours.
func vacate(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid():
		return &Error{path, "is in the way: it is no socket of ours", os.ErrExist}
	}
	conn, err := net.Dial("unix", path)
	switch {
	case err == nil:
		conn.Close()
		return &Error{path, "lives already", os.ErrExist}
	case !errors.Is(err, syscall.ECONNREFUSED):
		return &Error{path, "is unusable: " + reason(err), err}
	}
	return os.Remove(path)
}

// listenAt makes the socket under another name first: nobody finds one that is not ready.
func listenAt(path string) (*Listener, error) {
	name := path + "." + rand.Text()[:16] // as long as OpenSSH's
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
