package knownhosts

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sshpace/internal/base/shell"
)

// maxFileName is the longest file name of the usual file systems.
const maxFileName = 255

// safeFileName reports why the name of a host cannot be the name of its file.
func safeFileName(host string) error {
	unsafe := func(r rune) bool {
		return !('0' <= r && r <= '9' || 'a' <= r && r <= 'z' || strings.ContainsRune("._:%-", r))
	}
	reason := ""
	switch {
	case host == "":
		reason = "is empty"
	case len(host) > maxFileName:
		reason = "is too long for a file name"
	case host[0] == '.' || host[0] == '-':
		reason = "starts with " + host[:1]
	case strings.HasSuffix(host, ".old"):
		reason = "ends with .old, which is the name ssh gives to backups"
	case strings.ContainsFunc(host, unsafe):
		reason = "has characters that a host name cannot have"
	default:
		return nil
	}
	return fmt.Errorf("%.80q %s", host, reason)
}

// write makes all files of a split. A directory that does not exist yet appears
// with all its files at once; in one that does, each file is replaced by itself.
func (s *splitter) write(ctx context.Context, dir string, targets map[string][]string) error {
	dir = filepath.Clean(dir)
	files := s.build(targets)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return s.writeInto(ctx, dir, files)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(filepath.Dir(dir), ".sshpace-split-") // mode 0700
	if err != nil {
		return err
	}
	if err = s.writeInto(ctx, staging, files); err == nil {
		err = os.Rename(staging, dir)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	return nil
}

// writeInto makes all files in an existing directory.
func (s *splitter) writeInto(ctx context.Context, dir string, files []hostFile) error {
	root, err := openPrivateDir(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	w, err := s.newFileWriter(root)
	if err != nil {
		return err
	}
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f.text == "" {
			s.result.Missing = append(s.result.Missing, f.host)
		} else if err := w.put(f.host, f.text); err != nil {
			return err
		}
		if s.options.Progress != nil {
			s.options.Progress(i+1, len(files))
		}
	}
	w.force = true // PatternsFile is ours alone; ssh only ever reads it
	return w.put(PatternsFile, s.patterns())
}

// newFileWriter looks at what is in the directory already.
func (s *splitter) newFileWriter(root *os.Root) (fileWriter, error) {
	w := fileWriter{root: root, force: s.options.Force, result: &s.result, present: make(map[string]bool)}
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		w.present[e.Name()] = true
	}
	for _, src := range s.x.files {
		if info, err := os.Stat(src.path); err == nil {
			w.sources = append(w.sources, info)
		}
	}
	return w, err
}

// openPrivateDir refuses a directory in which others could plant files.
func openPrivateDir(dir string) (*os.Root, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	info, err := root.Stat(".")
	if err == nil {
		err = refuseShared(dir, info)
	}
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return root, nil
}

func refuseShared(dir string, info os.FileInfo) error {
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others; make it private with: chmod go-w %s", dir, shell.Word(dir))
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user; name a directory of your own", dir)
	}
	return nil
}

// fileWriter puts files into a directory that it never leaves.
type fileWriter struct {
	root    *os.Root
	present map[string]bool // what the directory held at first
	sources []os.FileInfo   // files that must not be replaced
	force   bool
	result  *SplitResult
}

// put makes the file hold text. It leaves alone what is right already, and
// without force what differs.
func (w fileWriter) put(name, text string) error {
	if !w.present[name] {
		return w.create(name, text)
	}
	info, err := w.root.Lstat(name)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(w.sources, func(src os.FileInfo) bool { return os.SameFile(src, info) }):
		return fmt.Errorf("%s is a file to split, not one to write; name another directory", filepath.Join(w.root.Name(), name))
	}
	if w.same(name, info, text) {
		w.result.Unchanged++
		return nil
	}
	if !w.force {
		w.result.Kept = append(w.result.Kept, name)
		return nil
	}
	return w.replace(name, text)
}

func (w fileWriter) same(name string, info os.FileInfo, text string) bool {
	if !info.Mode().IsRegular() || info.Size() != int64(len(text)) {
		return false
	}
	old, err := w.root.ReadFile(name)
	return err == nil && bytes.Equal(old, []byte(text))
}

// replace writes a new file beside the old one and renames it into place. A
// symbolic link is replaced, not followed.
func (w fileWriter) replace(name, text string) error {
	temporary := ".tmp-" + rand.Text()
	if err := w.create(temporary, text); err != nil {
		return err
	}
	if err := w.root.Rename(temporary, name); err != nil {
		return errors.Join(err, w.root.Remove(temporary))
	}
	return nil
}

// create writes a file that does not exist yet. What ssh may read of it before
// it is complete are fewer keys, never others.
func (w fileWriter) create(name, text string) error {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, w.root.Remove(name))
	}
	w.result.Written++
	return nil
}
