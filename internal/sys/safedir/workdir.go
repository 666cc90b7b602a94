package safedir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Workdir is a private directory (0700) of this run. It is held open, and locked as long as we
// live.
type Workdir struct {
	*Directory
	Path string
	// Strict is true where every parent directory is writable by its owner alone, so that OpenSSH's
	// StrictModes accepts files in it (misc.c:safe_path). It is false only for sticky directories
	// such as /tmp, and for groups of one member.
	Strict bool
	Swept  []string // directories of killed runs, which are removed now

	lock   io.Closer
	keeper *exec.Cmd
	alive  io.Closer
}

// WorkdirParams says where to make the directory.
type WorkdirParams struct {
	Getenv func(string) string
	// Keeper is the command line of a process that runs Keep on the directory; the directory's path
	// is appended.
	Keeper []string
	// In is the one directory to make it in; "" chooses.
	In string
	// InMemory asks for a directory in memory, where there is one.
	InMemory bool
}

// prefix begins the name of every private directory.
const prefix = "sshpace-run-"

// memory is a directory in memory (shm_overview(7)).
const memory = "/dev/shm"

// NewWorkdir makes the directory in XDG_RUNTIME_DIR or the user's cache directory, or, where others
// could reach it there, in the directory for temporary files. Leftovers of killed runs in any of
// these are removed. The error says why each of them failed.
func NewWorkdir(params WorkdirParams) (*Workdir, error) {
	candidates := parents(params.Getenv, params.InMemory)
	if params.In != "" {
		candidates = []string{params.In}
	}
	swept := sweep(append(candidates, memory))
	var why []error
	for _, parent := range candidates {
		d, err := newIn(parent)
		if err != nil {
			why = append(why, err)
			continue
		}
		d.Swept = swept
		if err := d.watch(params.Keeper); err != nil {
			return nil, errors.Join(fmt.Errorf("start keeper of %s: %w", d.Path, err), d.remove())
		}
		return d, nil
	}
	return nil, &NoneError{why}
}

// NoneError says why a private directory could be made nowhere.
type NoneError struct{ Why []error }

func (e *NoneError) Error() string {
	var reasons []string
	for _, err := range e.Why {
		reasons = append(reasons, err.Error())
	}
	return "no directory can be made that other users cannot reach: " + strings.Join(reasons, "; ")
}

func (e *NoneError) Unwrap() []error { return e.Why }

// parents lists the directories to try.
func parents(getenv func(string) string, inMemory bool) []string {
	list := []string{Runtime(getenv), Cache(getenv), Temporary(getenv), "/tmp"}
	if inMemory {
		list = append([]string{memory}, list...)
	}
	var usable []string
	for i, path := range list {
		if path != "" && (i == 0 || path != list[i-1]) {
			usable = append(usable, path)
		}
	}
	return usable
}

// tries is how often a new directory may be mistaken for a dead one before it is locked.
const tries = 10

func newIn(parent string) (*Workdir, error) {
	real, err := ResolveAll(parent)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(real, " \t\n\"'\\%$") {
		return nil, fmt.Errorf("%q cannot be named in sshd_config", real)
	}
	for range tries {
		path, err := os.MkdirTemp(real, prefix)
		if err != nil {
			return nil, err
		}
		d, err := hold(path)
		if err == nil {
			d.Strict = strict(path)
			return d, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errHeld) {
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return nil, fmt.Errorf("%s: new directories are removed at once", real)
}

// strict reports whether others cannot write to any directory of a path, as StrictModes requires.
func strict(path string) bool {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o022 != 0 {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
	}
}

// watch starts the keeper: a process that removes the directory when its standard input ends, which
// happens when this process is gone, for any reason.
func (d *Workdir) watch(argv []string) error {
	cmd := exec.Command(argv[0], append(argv[1:len(argv):len(argv)], d.Path)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // out of the reach of Ctrl-C
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	d.keeper, d.alive = cmd, in
	return nil
}

// Keep is the keeper's program: it waits for the end of in and removes path, which must be a
// directory of NewWorkdir.
func Keep(path string, in io.Reader) error {
	if !strings.HasPrefix(filepath.Base(path), prefix) {
		return fmt.Errorf("keeper: %s is not a private directory of sshpace", path)
	}
	directory, err := Open(path)
	if err != nil {
		return ignoreMissing(err)
	}
	defer directory.Close()
	_, _ = io.Copy(io.Discard, in)
	if err := directory.Verify(); err != nil {
		return ignoreMissing(err)
	}
	return os.RemoveAll(directory.Path())
}

// File returns the path of a file in the directory.
func (d *Workdir) File(name string) string { return filepath.Join(d.Path, name) }

// Close removes the directory and everything in it.
func (d *Workdir) Close() error {
	err := d.remove()
	d.alive.Close()
	if waitErr := d.keeper.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("keeper of %s: %w", d.Path, waitErr)
	}
	return err
}

func (d *Workdir) remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close(), d.Directory.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
