package file

import (
	"errors"
	"os"
)

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
