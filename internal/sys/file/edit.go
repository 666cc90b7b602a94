// Package file reads files of other people up to a limit, since /dev/zero in the place of a file
// must cost neither memory nor time, and changes files safely. It knows nothing about their
// content.
package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/sched"
	"sshpace/internal/sys/safedir"
)

// Change is a change of one file that has not been made yet.
type Change struct {
	Path    string // of the file itself, links followed
	Existed bool
	Old     []byte
	New     []byte
	Mode    os.FileMode // for a file that does not exist yet
	info    os.FileInfo
	lock    *os.File // of the directory
}

// ErrChanged says that somebody else changed the file in the meantime.
var ErrChanged = errors.New("the file was changed by another program in the meantime")

// maxFile is the largest configuration that is read, in bytes.
const maxFile = 4 << 20

// Open reads a file that is to be changed. It may be missing, unless a link leads to it. Nobody
// else may be able to put another one in its place (package safedir): otherwise the error is a
// *safedir.UntrustedError. Until Close no other process of ours changes a file of the directory;
// Open waits for such a process.
func Open(ctx context.Context, path string) (*Change, error) {
	real, err := safedir.ResolveFile(path)
	if err != nil {
		return nil, err
	}
	c := &Change{Path: real, Mode: 0o600}
	if c.lock, err = lockDirectory(ctx, filepath.Dir(real)); err != nil {
		return nil, err
	}
	if err := c.read(path); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// Close lets others change files of the directory.
func (c *Change) Close() error { return c.lock.Close() }

// lockDirectory locks a directory (flock(2)), and waits while another process of ours has it
// locked.
func lockDirectory(ctx context.Context, dir string) (*os.File, error) {
	const every = 20 * time.Millisecond
	lock, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		held := errors.Is(err, unix.EWOULDBLOCK)
		if held && !sched.For(ctx, every) {
			err, held = context.Cause(ctx), false
		}
		switch {
		case err == nil:
			return lock, nil
		case !held:
			return nil, errors.Join(err, lock.Close())
		}
	}
}

// read reads the old content of the file; path is its name as the user wrote it. A link to nothing,
// and a file that others can write, are errors.
func (c *Change) read(path string) error {
	f, err := os.OpenFile(c.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return &safedir.UntrustedError{Path: path, Why: "is a link to nothing"}
		}
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if c.info, err = f.Stat(); err != nil {
		return err
	}
	if !c.info.Mode().IsRegular() {
		return &safedir.UntrustedError{Path: c.Path, Why: "is not a regular file"}
	}
	if c.info.Mode().Perm()&0o022 != 0 {
		return &safedir.UntrustedError{Path: c.Path, Why: "can be written by others; ssh would refuse it, too"}
	}
	c.Existed = true
	c.Old, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if len(c.Old) > maxFile {
		return &safedir.UntrustedError{Path: c.Path, Why: "is too large for a configuration"}
	}
	return err
}

// Apply makes the change. before checks the new file under a temporary name in the same directory;
// after checks the whole configuration once it is in place. The old file is kept as backup, "" if
// there was none; if an earlier change kept the same content, that copy is the backup.
func (c *Change) Apply(now time.Time, before func(path string) error, after func() error) (backup string, err error) {
	c.removeLeftovers()
	candidate, err := c.write(c.Path+newMark, c.New)
	if err != nil {
		return "", err
	}
	defer os.Remove(candidate)
	if err := before(candidate); err != nil {
		return "", fmt.Errorf("the new file fails its check, nothing was changed: %w", err)
	}
	fresh := ""
	if backup = c.kept(); c.Existed && backup == "" {
		backup = c.Path + copyMark + Stamp(now)
		if err := c.keep(backup); err != nil {
			return "", err
		}
		fresh = backup
	}
	if err = c.unchanged(); err == nil {
		err = os.Rename(candidate, c.Path)
	}
	if err != nil {
		if fresh != "" {
			err = errors.Join(err, os.Remove(fresh)) // of a file that is as it was
		}
		return "", err
	}
	if err := syncDirectory(filepath.Dir(c.Path)); err != nil {
		return backup, err
	}
	if err := after(); err != nil {
		return backup, errors.Join(fmt.Errorf("the configuration fails its check with the change, which was taken back: %w", err), c.undo(backup))
	}
	return backup, nil
}

// unchanged makes sure that nobody else changed the file since it was read.
func (c *Change) unchanged() error {
	text, err := ReadFile(c.Path, maxFile)
	switch {
	case errors.Is(err, os.ErrNotExist) && !c.Existed:
		return nil
	case err != nil:
		return err
	case !c.Existed || !bytes.Equal(text, c.Old):
		return ErrChanged
	}
	return nil
}

// write makes a file next to the old one, with its owner, mode and attributes.
func (c *Change) write(prefix string, text []byte) (path string, err error) {
	f, err := os.CreateTemp(filepath.Dir(c.Path), filepath.Base(prefix)+"*")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err := f.Write(text); err != nil {
		return "", err
	}
	if err := c.dress(f); err != nil {
		return "", err
	}
	return f.Name(), f.Sync()
}

// dress gives a new file the owner, the mode and the extended attributes of the old one.
func (c *Change) dress(f *os.File) error {
	if !c.Existed {
		return f.Chmod(c.Mode)
	}
	if owner, ok := c.info.Sys().(*syscall.Stat_t); ok && (int(owner.Uid) != os.Getuid() || int(owner.Gid) != os.Getgid()) {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return fmt.Errorf("keep the owner of %s: %w", c.Path, err)
		}
	}
	if err := f.Chmod(c.info.Mode().Perm()); err != nil {
		return err
	}
	return c.copyAttributes(f)
}

func (c *Change) copyAttributes(f *os.File) error {
	names := make([]byte, 64<<10)
	n, err := unix.Listxattr(c.Path, names)
	if errors.Is(err, unix.ENOTSUP) || n == 0 && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the attributes of %s: %w", c.Path, err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		value := make([]byte, 64<<10)
		size, err := unix.Getxattr(c.Path, name, value)
		if err == nil && !hasAttribute(f, name, value[:size]) {
			err = unix.Fsetxattr(int(f.Fd()), name, value[:size], 0)
		}
		if err != nil {
			return fmt.Errorf("keep attribute %s of %s: %w", name, c.Path, err)
		}
	}
	return nil
}

// hasAttribute reports whether the new file has an attribute already, such as a label that the
// system gave it.
func hasAttribute(f *os.File, name string, value []byte) bool {
	own := make([]byte, 64<<10)
	n, err := unix.Fgetxattr(int(f.Fd()), name, own)
	return err == nil && bytes.Equal(own[:n], value)
}

// copyMark and a time end the names of backups, newMark that of a new file; a number follows in the
// names of temporary files.
const (
	copyMark = ".sshpace-"
	newMark  = copyMark + "new-"
)

// removeLeftovers removes the temporary files of changes that were killed. Nobody else is making
// any now.
func (c *Change) removeLeftovers() {
	dir, name := filepath.Split(c.Path)
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		mark, ours := strings.CutPrefix(e.Name(), name)
		cut := strings.LastIndexByte(mark, '-') + 1
		if _, err := strconv.ParseUint(mark[cut:], 10, 64); !ours || err != nil {
			continue
		}
		if mark[:cut] == newMark || isCopy(strings.TrimSuffix(mark[:cut], "-")) {
			_ = os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// isCopy reports whether a file name ends like one of a backup.
func isCopy(end string) bool {
	when, ours := strings.CutPrefix(end, copyMark)
	return ours && IsStamp(when)
}

// kept returns the backup that already holds the old file, with its owner and mode; "" for none.
func (c *Change) kept() string {
	entries, _ := os.ReadDir(filepath.Dir(c.Path))
	for _, e := range entries {
		if end, ours := strings.CutPrefix(e.Name(), filepath.Base(c.Path)); !ours || !isCopy(end) || !c.Existed {
			continue
		}
		info, err := e.Info()
		if err != nil || info.Mode() != c.info.Mode() || info.Size() != c.info.Size() || !sameOwner(info, c.info) {
			continue
		}
		path := filepath.Join(filepath.Dir(c.Path), e.Name())
		if text, err := ReadFile(path, maxFile); err == nil && bytes.Equal(text, c.Old) {
			return path
		}
	}
	return ""
}

func sameOwner(a, b os.FileInfo) bool {
	one, ok := a.Sys().(*syscall.Stat_t)
	other, same := b.Sys().(*syscall.Stat_t)
	return ok && same && one.Uid == other.Uid && one.Gid == other.Gid
}

// keep writes the old file to its backup.
func (c *Change) keep(backup string) error {
	temporary, err := c.write(backup+"-", c.Old)
	if err != nil {
		return fmt.Errorf("keep a copy: %w", err)
	}
	defer os.Remove(temporary)
	return os.Link(temporary, backup) // fails if there is one already
}

// undo puts the backup back into place; without one, the file was new, and is removed.
func (c *Change) undo(backup string) error {
	if backup == "" {
		return os.Remove(c.Path)
	}
	return os.Rename(backup, c.Path)
}

func syncDirectory(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
