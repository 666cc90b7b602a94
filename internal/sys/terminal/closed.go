package terminal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// shells lists programs that open /dev/null for reading and writing only for >&-.
var shells = []string{"sh", "bash", "dash", "ash", "busybox", "ksh", "mksh", "zsh", "fish", "tcsh", "csh"}

// Closed reports whether the file of a writer was closed when the program began, as far as that can
// be known: Go's runtime opens /dev/null in the place of such a file, for reading and writing. Some
// programs pass that on purpose; a shell does not, nor does a program that has no such file itself.
// It is false where the parent process cannot be examined.
func Closed(w io.Writer) bool {
	f := fileOf(w)
	null, err := os.Stat(os.DevNull)
	if f == nil || err != nil {
		return false
	}
	flags, err := unix.FcntlInt(f.Fd(), unix.F_GETFL, 0)
	if is, bad := f.Stat(); err != nil || bad != nil || flags&unix.O_ACCMODE != unix.O_RDWR || !os.SameFile(is, null) {
		return false
	}
	parent := filepath.Join("/proc", strconv.Itoa(os.Getppid()))
	if _, err := os.Stat(filepath.Join(parent, "fd")); err != nil {
		return false
	}
	theirs, err := os.Stat(filepath.Join(parent, "fd", strconv.Itoa(int(f.Fd()))))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	program, _ := os.Readlink(filepath.Join(parent, "exe"))
	name := strings.TrimRight(filepath.Base(program), "0123456789.-")
	return !os.SameFile(theirs, null) && slices.Contains(shells, name)
}
