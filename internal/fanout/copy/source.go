package copy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/wildcard"
)

// item is a file, directory or link to copy to the hosts.
type item struct {
	rel      string // below the place of its source, with slashes; "" is the source itself
	local    string
	kind     fs.FileMode // 0 = file, fs.ModeDir, fs.ModeSymlink
	perm     fs.FileMode
	special  fs.FileMode // of a directory: setgid and sticky
	modified time.Time
	size     int64
	target   string // of a link

	once sync.Once
	sum  uint32
	err  error

	keep    bool // in memory: a small file
	loading sync.Once
	data    []byte
}

// Source holds the files of one argument of a copy, read once for all hosts.
type Source struct {
	base  string // its last name
	scp   *Scp
	out   wildcard.Paths
	items []*item
	kept  int64    // bytes of the items that are kept in memory
	Left  []string // names of anything but files, directories and links
	left  []string // of those, below the place of the source, with slashes
}

// Scan lists the files of a name; with a slash at its end, the content of the directory. A link on
// the command line is followed, others are copied as links, so that none leads in a circle. With
// scp it lists the files that scp(1) would copy: targets of links, and a directory itself also with
// a slash at its end.
func Scan(name string, scp *Scp) (*Source, error) { return scanWithout(nil, name, scp) }

// scanWithout is Scan without excluded names.
func scanWithout(exclude wildcard.Paths, name string, scp *Scp) (*Source, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(name)
	if _, named := errors.AsType[*fs.PathError](err); err != nil && !named { // links in a circle
		return nil, &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, cause(err))
	}
	if info, err := os.Stat(real); err != nil {
		return nil, err
	} else if !info.IsDir() && !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "copy", Path: name, Err: errors.New("is not a file, directory or link")}
	}
	s := &Source{base: filepath.Base(absolute), scp: scp, out: exclude}
	if strings.HasSuffix(name, "/") && scp == nil || filepath.Base(name) == "." {
		s.base = "." // its content, as in rsync(1)
	}
	return s, s.walk(real, "", 0)
}

// isNamedDirectory reports whether the name means a directory itself, and not only its content.
func (s *Source) isNamedDirectory() bool { return s.items[0].kind == fs.ModeDir && s.base != "." }

// cause returns an error of a file without the system call, and without the name.
func cause(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	return err
}

// walk lists a file or directory, which hosts get as rel.
func (s *Source) walk(root, rel string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%s: %w", root, syscall.ELOOP)
	}
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, at)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name := path.Join(rel, filepath.ToSlash(below))
		if name == "." {
			name = ""
		}
		if at := path.Join(s.base, name); at != "." && s.out.Match(at, d.IsDir()) {
			return skipped(d)
		}
		if s.scp != nil && info.Mode().Type() == fs.ModeSymlink {
			return s.follow(at, name, depth)
		}
		return s.add(at, name, info)
	})
}

// skipped leaves out a file or a directory with all its content.
func skipped(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// follow lists the target of a link.
func (s *Source) follow(at, rel string, depth int) error {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		s.Left = append(s.Left, at)
		return nil
	}
	return s.walk(real, rel, depth+1)
}

func (s *Source) add(at, rel string, info fs.FileInfo) error {
	it := &item{rel: rel, local: at, kind: info.Mode().Type(), perm: info.Mode().Perm(), modified: sftpTime(info.ModTime()), size: info.Size()}
	var err error
	switch it.kind {
	case 0:
	case fs.ModeDir:
		it.special = info.Mode() & (fs.ModeSetgid | fs.ModeSticky)
	case fs.ModeSymlink:
		if it.target, err = os.Readlink(at); err != nil {
			return err
		}
	default:
		s.Left, s.left = append(s.Left, at), append(s.left, rel)
		return nil
	}
	if it.kind == 0 && it.size <= smallFile && s.kept+it.size <= mostKept {
		it.keep, s.kept = true, s.kept+it.size
	}
	s.items = append(s.items, it)
	return nil
}

// sftpTime rounds to a time that SFTP can express, a whole second.
func sftpTime(t time.Time) time.Time {
	return time.Unix(min(max(t.Unix(), 0), math.MaxUint32), 0)
}

// Files up to smallFile are read once for all hosts, as long as all of them together are no more
// than mostKept.
const (
	smallFile = 64 << 10
	mostKept  = 256 << 20
)

// open opens the file for reading, and returns a function that closes it. A small file is read into
// memory, for a thousand hosts.
func (it *item) open() (io.ReaderAt, func(), error) {
	if !it.keep {
		f, err := os.Open(it.local)
		if err != nil {
			return nil, nil, err
		}
		return f, func() { f.Close() }, nil
	}
	it.loading.Do(func() { it.data, it.err = os.ReadFile(it.local) })
	if it.err != nil {
		return nil, nil, it.err
	}
	return bytes.NewReader(it.data), func() {}, nil
}

// cksum returns the present checksum of the file, once for all hosts.
func (it *item) cksum() (uint32, error) {
	var err error
	it.once.Do(func() {
		var r io.ReaderAt
		var done func()
		if r, done, err = it.open(); err != nil {
			return
		}
		defer done()
		var size int64
		it.sum, size, err = cksumOf(io.NewSectionReader(r, 0, 1<<62))
		if err == nil && size != it.size {
			err = errChanged
		}
		if err != nil {
			it.err = err
		}
	})
	return it.sum, it.err
}

var errChanged = fmt.Errorf("changed here while it was being copied")

// mode returns the mode for chmod(2). Files lose their special bits.
func (it *item) mode() uint32 {
	mode := uint32(it.perm)
	if it.special&fs.ModeSetgid != 0 {
		mode |= 0o2000
	}
	if it.special&fs.ModeSticky != 0 {
		mode |= 0o1000
	}
	return mode
}

// identity distinguishes one content of one file from any other: it includes the time of the last
// change of its inode, which nobody can set.
func (it *item) identity() (string, error) {
	var a unix.Stat_t
	if err := unix.Stat(it.local, &a); err != nil {
		return "", &fs.PathError{Op: "stat", Path: it.local, Err: err}
	}
	if a.Size != it.size {
		return "", errChanged
	}
	return fmt.Sprint(a.Dev, a.Ino, a.Size, a.Mtim, a.Ctim), nil
}
