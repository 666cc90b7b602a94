package safedir

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
)

// Directory is a directory that only we and root can change. It is held open: all its methods act
// on this directory, wherever its path leads by then.
type Directory struct {
	*os.Root
	real string
	info fs.FileInfo
}

// Open opens a directory.
func Open(path string) (*Directory, error) { return open(path, nil) }

// Make opens a directory; it first makes it and its parents, 0700, where they are missing.
func Make(path string) (*Directory, error) { return open(path, private0700) }

func open(path string, make func(string) error) (*Directory, error) {
	real, err := resolve(path, make)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	f := &Directory{Root: root, real: real}
	if f.info, err = root.Stat("."); err == nil {
		err = writtenByTrusted(real, f.info)
	}
	if err == nil {
		err = f.Verify()
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// Path returns the path of the directory, without links.
func (f *Directory) Path() string { return f.real }

// Verify makes sure that the path still leads to this directory, through directories that are out
// of others' reach, and that its owner is the same: for programs that must be given a path.
func (f *Directory) Verify() error {
	real, err := Resolve(f.real)
	if err != nil {
		return err
	}
	info, err := os.Lstat(real)
	if err != nil {
		return err
	}
	if !os.SameFile(info, f.info) || owner(info) != owner(f.info) {
		return &UntrustedError{f.real, "was replaced by another directory"}
	}
	return writtenByTrusted(real, info)
}

// Create makes a new file, 0600.
func (f *Directory) Create(name string) (*os.File, error) {
	return f.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// Writable makes sure that files can be made in the directory, by making one: a file system may be
// read-only, full or over quota, and a directory immutable.
func (f *Directory) Writable() error {
	name := ".sshpace-" + rand.Text()
	file, err := f.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), f.Remove(name))
}

// Own opens a file for reading that must be a regular one of ours, not a link. Others may have put
// files into the directory when it was still open to them.
func (f *Directory) Own(name string) (*os.File, error) {
	file, err := f.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO must not hold us up
	if err != nil {
		return nil, err
	}
	here, err := f.Lstat(name)
	if err == nil {
		err = f.ours(name, here)
	}
	if opened, statErr := file.Stat(); err == nil && (statErr != nil || !os.SameFile(here, opened)) {
		err = &UntrustedError{f.real + "/" + name, "was replaced while it was opened"}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func (f *Directory) ours(name string, info fs.FileInfo) error {
	path := f.real + "/" + name
	if !info.Mode().IsRegular() {
		return &UntrustedError{path, "is not a regular file"}
	}
	if uid := owner(info); uid != os.Geteuid() {
		return &UntrustedError{path, fmt.Sprintf("belongs to another user (uid %d)", uid)}
	}
	if info.Mode().Perm()&0o002 != 0 {
		return &UntrustedError{path, "can be written by others"}
	}
	return nil
}

// Names lists the files that Own would open and that end with suffix, sorted.
func (f *Directory) Names(suffix string) ([]string, error) {
	all, err := f.Entries(suffix)
	names := slices.DeleteFunc(all, func(name string) bool {
		info, err := f.Lstat(name)
		return err != nil || f.ours(name, info) != nil
	})
	slices.Sort(names)
	return names, err
}

// Entries lists all entries that end with suffix, of any kind and owner.
func (f *Directory) Entries(suffix string) ([]string, error) {
	dir, err := f.Root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	all, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(name string) bool { return !strings.HasSuffix(name, suffix) }), nil
}

// Short opens a directory and returns a short path of it, which leads there for all our processes
// until it is closed. A socket's path has 107 bytes at most (unix(7)), of which ssh takes 17, and
// names of directories may be long.
func Short(directory string) (path string, open *os.File, err error) {
	open, err = os.Open(directory)
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), open.Fd()), open, nil
}
