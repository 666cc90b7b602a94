package edit

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// Replace writes a file with a mode, whole or not at all, and through no link.
// Its errors name that file, not the temporary one.
func Replace(path string, content []byte, mode os.FileMode) error {
	if err := swapIn(path, content, mode); err != nil {
		var number syscall.Errno
		if errors.As(err, &number) {
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
	temporary, err := os.CreateTemp(filepath.Dir(path), ".sshpace-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	if _, err = temporary.Write(content); err == nil {
		err = temporary.Chmod(mode)
	}
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), path)
}
