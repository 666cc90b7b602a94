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

// Dir is a private folder (0700) of this run. It is held open, and locked as
// long as we live.
type Workdir struct {
	*Folder
	Path string
	// Strict is true where every parent folder is writable by its owner alone,
	// so that OpenSSH's StrictModes accepts files in it (misc.c:safe_path). It is
	// false only for sticky folders such as /tmp, and for groups of one member.
	Strict bool
	Swept  []string // what killed runs had left behind, and is gone now

	lock   io.Closer
	keeper *exec.Cmd
	alive  io.Closer
}

// Params tells where to make the folder.
type WorkdirParams struct {
	Getenv func(string) string
	// Keeper is the command line of a process that runs Keep on the folder; the
	// folder's path is appended.
	Keeper []string
	// In is the one folder to make it in; "" chooses.
	In string
	// InMemory asks for a folder in memory, where there is one.
	InMemory bool
}

// prefix begins the name of every private folder.
const prefix = "sshpace-run-"

// memory is a folder in memory (shm_overview(7)).
const memory = "/dev/shm"

// New makes the folder in XDG_RUNTIME_DIR or the user's cache folder, and where
// others could reach it there, in the folder for temporary files. What killed
// runs left behind in any of these is removed. The error says what is wrong with
// each of them.
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

// NoneError says why a private folder could be made nowhere.
type NoneError struct{ Why []error }

func (e *NoneError) Error() string {
	var reasons []string
	for _, err := range e.Why {
		reasons = append(reasons, err.Error())
	}
	return "no directory can be made that other users cannot reach: " + strings.Join(reasons, "; ")
}

func (e *NoneError) Unwrap() []error { return e.Why }

// parents lists the folders to try.
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

// tries is how often a new folder may be taken for a dead one before it is
// locked.
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

// strict reports whether no folder of a path may be written by others, as
// StrictModes wants it.
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

// watch starts the keeper: a process that removes the folder when its standard
// input ends, which is when this process is gone, however it went.
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

// Keep is the keeper's program: it waits for the end of in and removes path,
// which must be a folder that New made.
func Keep(path string, in io.Reader) error {
	if !strings.HasPrefix(filepath.Base(path), prefix) {
		return fmt.Errorf("keeper: %s is not a private directory of sshpace", path)
	}
	folder, err := Open(path)
	if err != nil {
		return ignoreMissing(err)
	}
	defer folder.Close()
	_, _ = io.Copy(io.Discard, in)
	if err := folder.Verify(); err != nil {
		return ignoreMissing(err)
	}
	return os.RemoveAll(folder.Path())
}

// File returns the path of a file in the folder.
func (d *Workdir) File(name string) string { return filepath.Join(d.Path, name) }

// Close removes the folder and everything in it.
func (d *Workdir) Close() error {
	err := d.remove()
	d.alive.Close()
	if waitErr := d.keeper.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("keeper of %s: %w", d.Path, waitErr)
	}
	return err
}

func (d *Workdir) remove() error {
	return errors.Join(os.RemoveAll(d.Path), d.lock.Close(), d.Folder.Close())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
