package transfer

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// item is a file, folder or link that is to be copied to the hosts.
type item struct {
	rel      string // below the place of its source, with slashes; "" is the source itself
	local    string
	kind     fs.FileMode // 0 = file, fs.ModeDir, fs.ModeSymlink
	perm     fs.FileMode
	modified time.Time
	size     int64
	target   string // of a link

	once sync.Once
	sum  uint32
	err  error

	loading sync.Once
	data    []byte // of a small file
}

// Source is what stands for one argument of a copy, read once for all hosts.
type Source struct {
	base  string // its last name
	items []*item
	Left  []string // names of what is no file, folder or link
}

// Scan lists what a name stands for; with a slash at its end, what is in it. A link on the command line is followed,
// others are copied as links, so that none leads in a circle.
func Scan(name string) (*Source, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(name)
	if err != nil {
		return nil, err
	}
	s := &Source{base: filepath.Base(absolute)}
	if strings.HasSuffix(name, "/") || filepath.Base(name) == "." {
		s.base = "." // what is in it, as rsync(1) has it
	}
	err = filepath.WalkDir(real, func(at string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return s.add(real, at, d)
	})
	return s, err
}

func (s *Source) add(root, at string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	rel, err := filepath.Rel(root, at)
	if err != nil {
		return err
	}
	it := &item{rel: strings.TrimPrefix(filepath.ToSlash(rel), "."), local: at, kind: info.Mode().Type(), perm: info.Mode().Perm(), modified: info.ModTime(), size: info.Size()}
	if rel != "." {
		it.rel = filepath.ToSlash(rel)
	}
	switch it.kind {
	case 0, fs.ModeDir:
	case fs.ModeSymlink:
		if it.target, err = os.Readlink(at); err != nil {
			return err
		}
	default:
		s.Left = append(s.Left, at)
		return nil
	}
	s.items = append(s.items, it)
	return nil
}

// Count is how many files there are, and their bytes.
func (s *Source) Count() (files int, size int64) {
	for _, it := range s.items {
		if it.kind == 0 {
			files++
			size += it.size
		}
	}
	return files, size
}

// smallFile is what is read once for all hosts.
const smallFile = 64 << 10

// open reads the file: small ones from memory, for a thousand hosts.
func (it *item) open() (io.ReaderAt, func(), error) {
	if it.size > smallFile {
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
	return bytesAt(it.data), func() {}, nil
}

// bytesAt is data in memory.
type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[offset:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// cksum is the checksum of the file as it is now, once for all hosts.
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
