package safedir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// errHeld says that a living process holds the directory.
var errHeld = errors.New("the directory is in use")

// hold opens a private directory and locks it (flock(2)): the lock goes when its holder does, even
// by kill -9, and, unlike a process number, is never mistaken for somebody else's. A directory that
// was removed before it was locked does not exist.
func hold(path string) (*Workdir, error) {
	directory, err := Open(path)
	if err != nil {
		return nil, err
	}
	lock, err := directory.Root.Open(".")
	if err != nil {
		return nil, errors.Join(err, directory.Close())
	}
	err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errHeld
	}
	if err == nil {
		err = directory.Verify()
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close(), directory.Close())
	}
	return &Workdir{Directory: directory, Path: path, lock: lock}, nil
}

// sweep removes our directories that nobody holds: those of runs that were killed together with
// their keepers; it returns their paths. Those that cannot be removed stay.
func sweep(parents []string) (removed []string) {
	for _, parent := range parents {
		real, err := Resolve(parent)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(real)
		for _, entry := range entries {
			if strings.HasPrefix(entry.Name(), prefix) && isOurs(entry) {
				if path := filepath.Join(real, entry.Name()); removeDead(path) {
					removed = append(removed, path)
				}
			}
		}
	}
	return removed
}

func isOurs(entry os.DirEntry) bool {
	info, err := entry.Info()
	return err == nil && info.IsDir() && owner(info) == os.Geteuid()
}

func removeDead(path string) bool {
	d, err := hold(path)
	if err != nil {
		return false // somebody's, or gone
	}
	return d.remove() == nil
}
