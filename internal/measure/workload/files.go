package workload

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// Files are what is sent: one file for each size that was asked for, in a
// private folder.
type Files struct {
	Folder string
	Random bool
	made   map[int64]string
	trees  map[string]bool
}

// Of returns the path of a file of so many bytes.
func (f *Files) Of(size int64) (path string, err error) {
	if path, known := f.made[size]; known {
		return path, nil
	}
	path = filepath.Join(f.Folder, "payload."+strconv.FormatInt(size, 10))
	if err := f.write(path, size); err != nil {
		_ = os.Remove(path)
		return "", fmt.Errorf("write a file of %d bytes to send: %w", size, err)
	}
	if f.made == nil {
		f.made = map[int64]string{}
	}
	f.made[size] = path
	return path, nil
}

// Tree returns a folder with so many files of so many bytes each.
func (f *Files) Tree(count int, size int64) (path string, err error) {
	path = filepath.Join(f.Folder, fmt.Sprintf("payload.%dx%d", count, size))
	if f.trees[path] {
		return path, nil
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	for i := range count {
		if err := f.write(filepath.Join(path, fmt.Sprintf("file%06d", i)), size); err != nil {
			_ = os.RemoveAll(path)
			return "", fmt.Errorf("write %d files of %d bytes to send: %w", count, size, err)
		}
	}
	if f.trees == nil {
		f.trees = map[string]bool{}
	}
	f.trees[path] = true
	return path, nil
}

// chunk is what random files repeat: no window of a compressor reaches from one
// to the next (RFC 1951: 32 KiB).
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

// Remove removes all files. The folder stays.
func (f *Files) Remove() {
	for size, path := range f.made {
		_ = os.Remove(path)
		delete(f.made, size)
	}
	for path := range f.trees {
		_ = os.RemoveAll(path)
		delete(f.trees, path)
	}
}

// sum is the SHA-256 of a file and its length.
func sum(path string) (hash [sha256.Size]byte, size int64, err error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return hash, 0, err
	}
	defer file.Close()
	h := sha256.New()
	size, err = io.Copy(h, file)
	return [sha256.Size]byte(h.Sum(nil)), size, err
}

// Same compares a file that arrived with the one that was sent.
func Same(sent, arrived string) error {
	was, size, err := sum(sent)
	if err != nil {
		return err
	}
	is, length, err := sum(arrived)
	switch {
	case err != nil:
		return &Failure{"verification", err.Error()}
	case length != size:
		return &Failure{"verification", fmt.Sprintf("%d of %d bytes arrived", length, size)}
	case is != was:
		return &Failure{"verification", "what arrived is not what was sent"}
	}
	return nil
}
