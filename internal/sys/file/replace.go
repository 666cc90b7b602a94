package file

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file with a mode, subject to the umask: completely or not at all, and never
// through a link. Its errors name that file, not the temporary one.
func Replace(path string, content []byte, mode os.FileMode) error {
	if err := swapIn(path, content, mode); err != nil {
		if number, ok := errors.AsType[syscall.Errno](err); ok {
			err = &os.PathError{Op: "write", Path: path, Err: number}
		}
		return err
	}
	return nil
}

// swapIn writes a temporary file and renames it.
func swapIn(path string, content []byte, mode os.FileMode) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // such as /dev/stdout
		return os.WriteFile(path, content, mode)
	}
	temporary, err := os.OpenFile(filepath.Join(filepath.Dir(path), ".sshpace-"+rand.Text()), os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}

// Unnamed creates a temporary file in a directory, "" for that of the system. Only its owner can
// read it and nobody can find it: it has no name any more.
func Unnamed(dir string) (*os.File, error) {
	f, err := os.CreateTemp(dir, "sshpace-") // 0600
	if err != nil {
		return nil, err
	}
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
