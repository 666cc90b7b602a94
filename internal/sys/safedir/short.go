package safedir

import (
	"fmt"
	"os"
)

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
