//go:build linux

package transfer

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Files are the payloads: one file for each requested size, in a private directory.
type Files struct {
	Directory string
	Random    bool
	made      map[string]content // by path
}

// content describes a file, or all files in a directory.
type content struct {
	hash string // SHA-256 in hexadecimal; for a directory: of the lines that sha256sum prints for its files, in order
	size int64
}

// Of returns the path of a file of size bytes.
func (f *Files) Of(size int64) (path string, err error) {
	path = filepath.Join(f.Directory, "payload."+strconv.FormatInt(size, 10))
	err = f.make(path, fmt.Sprintf("a file of %d bytes", size), func() error { return f.write(path, size) })
	return path, err
}

// tree returns a directory with count files of size bytes each.
func (f *Files) tree(count int, size int64) (path string, err error) {
	path = filepath.Join(f.Directory, fmt.Sprintf("payload.%dx%d", count, size))
	err = f.make(path, fmt.Sprintf("%d files of %d bytes", count, size), func() error {
		err := os.Mkdir(path, 0o700)
		for i := 0; i < count && err == nil; i++ {
			err = f.write(filepath.Join(path, fmt.Sprintf("file%06d", i)), size)
		}
		return err
	})
	return path, err
}

// make makes a file or a directory, once, and reads its content.
func (f *Files) make(path, what string, write func() error) error {
	if _, known := f.made[path]; known {
		return nil
	}
	var holds content
	err := write()
	if err == nil {
		holds, err = contentOf(path)
	}
	if err != nil {
		_ = os.RemoveAll(path)
		return fmt.Errorf("write %s to send: %w", what, err)
	}
	if f.made == nil {
		f.made = map[string]content{}
	}
	f.made[path] = holds
	return nil
}

// chunk is the part that random files repeat: no window of a compressor reaches from one to the
// next (RFC 1951: 32 KiB).
const chunk = 1 << 20

func (f *Files) write(path string, size int64) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	page := make([]byte, min(chunk, size))
	if f.Random {
		_, _ = rand.Read(page)
	}
	for left := size; left > 0; left -= int64(len(page)) {
		if _, err := file.Write(page[:min(left, int64(len(page)))]); err != nil {
			return err
		}
	}
	return file.Close()
}

// Remove removes all files. The directory stays.
func (f *Files) Remove() {
	for path := range f.made {
		_ = os.RemoveAll(path)
	}
	clear(f.made)
}

// contentOf reads a file, or all files below a directory in the order of their names.
func contentOf(path string) (c content, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return c, err
	}
	if !info.IsDir() {
		return sum(path)
	}
	h := sha256.New()
	err = filepath.WalkDir(path, func(file string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		one, err := sum(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(path, file)
		c.size += one.size
		fmt.Fprintf(h, "%s  ./%s\n", one.hash, name)
		return err
	})
	c.hash = hex.EncodeToString(h.Sum(nil))
	return c, err
}

// sum returns the SHA-256 of a file and its length.
func sum(path string) (c content, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return c, err
	}
	defer file.Close()
	h := sha256.New()
	c.size, err = io.Copy(h, file)
	c.hash = hex.EncodeToString(h.Sum(nil))
	return c, err
}

// Same compares a file that arrived, or a directory, with the sent one.
func Same(sent, arrived string) error {
	was, err := contentOf(sent)
	if err != nil {
		return err
	}
	return was.same(arrived)
}

func (c content) same(arrived string) error {
	is, err := contentOf(arrived)
	switch {
	case err != nil:
		return &Failure{"verification", err.Error()}
	case is.size == c.size && is.hash != c.hash:
		return errOther
	}
	return Arrived("verification", is.size, c.size)
}

var errOther = &Failure{"verification", "the received data differs from the sent data"}
