// Package safedir finds and holds directories that nobody but us and root can change or replace.
// Whoever may rename a directory above ours decides where our path leads to: keys, a server's
// configuration that names commands, records that are run again.
//
// The rule, for a directory and every directory above it: it belongs to us or to root, and either
// others may not write in it, or it is sticky as /tmp is, so that its entries stay (inode(7)).
// Links in the path belong to us or to root. Each step is checked only after the one above has
// proved to be out of others' reach; so others cannot change the result afterwards.
package safedir

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// UntrustedError says why a directory, or a file in it, is not to be relied on.
type UntrustedError struct{ Path, Why string }

func (e *UntrustedError) Error() string { return e.Path + " " + e.Why }

// maxLinks is the most links that a path may lead through, as in the kernel (path_resolution(7)).
const maxLinks = 40

// Resolve follows path to a directory, and makes sure that every directory and link in it is out of
// others' reach. The directory itself may be sticky and open to all, as /tmp is. The result holds
// no links.
func Resolve(path string) (string, error) { return resolve(path, nil) }

// ResolveAll is Resolve that makes missing directories, 0700.
func ResolveAll(path string) (string, error) { return resolve(path, private0700) }

// ResolveFile follows path to a file, which may be missing, and makes sure that nobody else can put
// another one in its place: every directory and link in it is out of others' reach, and the file's
// own directory is open to nobody else. The result holds no links.
func ResolveFile(path string) (string, error) {
	for range maxLinks {
		directory, err := Open(filepath.Dir(path))
		if err != nil {
			return "", err
		}
		real := filepath.Join(directory.Path(), filepath.Base(path))
		info, err := directory.Lstat(filepath.Base(path))
		_ = directory.Close()
		if os.IsNotExist(err) {
			return real, nil
		}
		if err != nil || info.Mode().Type() != fs.ModeSymlink {
			return real, err
		}
		if err := ownedByTrusted(real, info); err != nil {
			return "", err
		}
		target, err := os.Readlink(real)
		if err != nil {
			return "", err
		}
		if path = target; !filepath.IsAbs(target) {
			path = filepath.Join(directory.Path(), target)
		}
	}
	return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
}

func private0700(path string) error { return os.Mkdir(path, 0o700) }

// resolve is Resolve; make, unless nil, is called for a missing directory.
func resolve(path string, make func(path string) error) (string, error) {
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = here + "/" + path
	}
	at, left, links := "/", strings.Split(path, "/"), 0
	if err := trustDirectory(at); err != nil {
		return "", err
	}
	for len(left) > 0 {
		name := left[0]
		left = left[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(at, name) // for "..": the parent, since at holds no links
		target, err := step(next, make)
		if err != nil {
			return "", err
		}
		if target == "" {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: path, Err: syscall.ELOOP}
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		left = append(strings.Split(target, "/"), left...)
	}
	return at, nil
}

// step checks one name of a path: a directory, which must be trusted, or a link, whose target it
// returns.
func step(path string, make func(path string) error) (target string, err error) {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) && make != nil {
		if err := make(path); err != nil && !os.IsExist(err) {
			return "", err
		}
		info, err = os.Lstat(path)
	}
	if err != nil {
		return "", err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		if err := ownedByTrusted(path, info); err != nil {
			return "", err
		}
		return os.Readlink(path)
	}
	return "", trustDirectory(path)
}

func trustDirectory(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "open", Path: path, Err: syscall.ENOTDIR}
	}
	if err := ownedByTrusted(path, info); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return writtenByTrusted(path, info)
}

// ownedByTrusted refuses files of others than us and root.
func ownedByTrusted(path string, info fs.FileInfo) error {
	if uid := owner(info); uid != 0 && uid != os.Geteuid() {
		return &UntrustedError{path, fmt.Sprintf("belongs to another user (uid %d)", uid)}
	}
	return nil
}

// writtenByTrusted refuses files that others may write. A group that has no other members than us
// and root does not count: where the umask is 002, people's directories belong to such groups.
func writtenByTrusted(path string, info fs.FileInfo) error {
	mode := info.Mode().Perm()
	stat := info.Sys().(*syscall.Stat_t)
	if mode&0o002 != 0 || mode&0o020 != 0 && !private(int(stat.Gid)) {
		return &UntrustedError{path, fmt.Sprintf("can be written by others (mode %04o)", mode)}
	}
	return nil
}

func owner(info fs.FileInfo) int { return int(info.Sys().(*syscall.Stat_t).Uid) }
