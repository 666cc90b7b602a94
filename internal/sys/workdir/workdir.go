// Package workdir makes the private folder that a run keeps its one-run keys,
// sockets and logs in, and sees to it that the folder goes away, even when
// sshpace is killed.
package workdir

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// Dir is a private folder (0700) of this run.
type Dir struct {
	Path string
	// Strict is true where every parent folder is writable by its owner alone,
	// so that OpenSSH's StrictModes accepts files in it (misc.c:safe_path).
	Strict bool

	keeper *exec.Cmd
	alive  io.Closer
}

// Params tells where to make the folder.
type Params struct {
	Getenv func(string) string
	// Keeper is the command line of a process that runs Keep on the folder; the
	// folder's path is appended.
	Keeper []string
}

// New makes the folder in XDG_RUNTIME_DIR or the user's cache folder, and where
// neither can be used, in the folder for temporary files.
func New(params Params) (*Dir, error) {
	var lastErr error
	for _, parent := range parents(params.Getenv) {
		if err := os.MkdirAll(parent, 0o700); err != nil {
			lastErr = err
			continue
		}
		path, err := os.MkdirTemp(parent, "sshpace-")
		if err != nil {
			lastErr = err
			continue
		}
		d := &Dir{Path: path, Strict: strict(path)}
		if err := d.watch(params.Keeper); err != nil {
			os.RemoveAll(path)
			return nil, fmt.Errorf("start keeper of %s: %w", path, err)
		}
		return d, nil
	}
	return nil, fmt.Errorf("make a private folder: %w", lastErr)
}

// parents lists the folders to try. Paths with blanks or quotes are left out:
// sshd_config could not name files in them.
func parents(getenv func(string) string) []string {
	var list []string
	if runtime := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(runtime) {
		list = append(list, runtime)
	}
	if cache := getenv("XDG_CACHE_HOME"); filepath.IsAbs(cache) {
		list = append(list, filepath.Join(cache, "sshpace"))
	} else if home := getenv("HOME"); filepath.IsAbs(home) && home != "/" {
		list = append(list, filepath.Join(home, ".cache", "sshpace"))
	}
	list = append(list, os.TempDir())
	usable := list[:0]
	for _, path := range list {
		if !strings.ContainsAny(path, " \t\n\"'\\%$") {
			usable = append(usable, path)
		}
	}
	return usable
}

// strict reports whether no parent folder of path may be written by others, as
// StrictModes wants it.
func strict(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm()&0o022 != 0 {
			return false
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 && int(owner.Uid) != os.Getuid() {
			return false
		}
		parent := filepath.Dir(path)
		if parent == path {
			return true
		}
		path = parent
	}
}

// watch starts the keeper: a process that removes the folder when its standard
// input ends, which is when this process is gone, however it went.
func (d *Dir) watch(argv []string) error {
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
	if !strings.HasPrefix(filepath.Base(path), "sshpace-") {
		return fmt.Errorf("keeper: %s is not a private folder of sshpace", path)
	}
	_, _ = io.Copy(io.Discard, in)
	return os.RemoveAll(path)
}

// File returns the path of a file in the folder.
func (d *Dir) File(name string) string { return filepath.Join(d.Path, name) }

// Close removes the folder and everything in it.
func (d *Dir) Close() error {
	err := os.RemoveAll(d.Path)
	d.alive.Close()
	if waitErr := d.keeper.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("keeper of %s: %w", d.Path, waitErr)
	}
	return err
}
