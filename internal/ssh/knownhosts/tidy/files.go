package tidy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/sys/safedir"
)

// write makes all files of a split. A new directory appears with all its files at once; in an
// existing one, each file is replaced by itself.
func (s *splitter) write(ctx context.Context, dir string, targets map[string][]string) error {
	dir = filepath.Clean(dir)
	files := s.build(targets)
	if err := s.somebody(files); err != nil {
		return err
	}
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return s.writeInto(ctx, dir, files)
	}
	parent, err := safedir.ResolveAll(filepath.Dir(dir))
	if err != nil {
		return err
	}
	staging, err := os.MkdirTemp(parent, ".sshpace-split-") // mode 0700
	if err != nil {
		return err
	}
	if err = s.writeInto(ctx, staging, files); err == nil {
		err = os.Rename(staging, filepath.Join(parent, filepath.Base(dir)))
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(staging))
	}
	return nil
}

// somebody fails if ssh would know no host by the files.
func (s *splitter) somebody(files []hostFile) error {
	if s.patterns() != "" || slices.ContainsFunc(files, func(f hostFile) bool { return f.text != "" }) {
		return nil
	}
	from := strings.Join(s.x.Files(), ", ")
	switch {
	case s.options.Hosts != nil:
		return fault.Usage("name them as ssh looks them up: sshpace config HOST shows that", "%s has a line for none of the named hosts", from)
	case slices.ContainsFunc(s.tables, func(t *index.Table) bool { return len(t.Lines()) > 0 }):
		return fault.Usage("name the hosts: -w 'web[1-9],db', --hosts-file FILE, or --from-config for all that your ssh_config names",
			"all names in %s are hashed and cannot be read back", from)
	}
	return fault.Usage("name another file with --known-hosts", "%s holds no host key", from)
}

// writeInto makes all files in an existing directory.
func (s *splitter) writeInto(ctx context.Context, dir string, files []hostFile) error {
	directory, err := OpenDirectory(dir)
	if err != nil {
		return err
	}
	defer directory.Close()
	w, err := s.newFileWriter(directory)
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
	w.force = true // patternsFile is ours alone; ssh only ever reads it
	return w.put(patternsFile, s.patterns())
}

// newFileWriter lists the present files of the directory.
func (s *splitter) newFileWriter(directory Directory) (fileWriter, error) {
	w := fileWriter{directory: directory, force: s.options.Force, result: &s.result, present: make(map[string]bool), written: s.written}
	entries, err := fs.ReadDir(directory.FS(), ".")
	for _, e := range entries {
		w.present[e.Name()] = true
	}
	for _, source := range s.x.Files() {
		if info, err := os.Stat(source); err == nil {
			w.sources = append(w.sources, info)
		}
	}
	return w, err
}

// fileWriter puts files into a directory that it never leaves.
type fileWriter struct {
	directory Directory
	present   map[string]bool // the files of the directory at first
	written   map[string]bool // files that this call has made or found unchanged
	sources   []os.FileInfo   // files that must not be replaced
	force     bool
	result    *SplitResult
}

// put makes the file hold text. It leaves alone a file that is right already and, without force,
// one that differs.
func (w fileWriter) put(name, text string) error {
	again := w.written[name]
	w.written[name] = true
	if !w.present[name] {
		w.result.Written++
		return w.directory.Write(name, text)
	}
	info, err := w.directory.Lstat(name)
	switch {
	case err != nil:
		return err
	case slices.ContainsFunc(w.sources, func(src os.FileInfo) bool { return os.SameFile(src, info) }):
		return fmt.Errorf("%s is a file to split, not one to write; name another directory", filepath.Join(w.directory.Path(), name))
	}
	same := w.same(name, info, text)
	switch {
	case again && same:
		return nil
	case again:
		return w.directory.Replace(name, text)
	case same:
		w.result.Unchanged++
		return nil
	case !w.force:
		w.written[name] = false
		w.result.Kept = append(w.result.Kept, name)
		return nil
	}
	w.result.Written++
	return w.directory.Replace(name, text)
}

func (w fileWriter) same(name string, info os.FileInfo, text string) bool {
	if !info.Mode().IsRegular() || info.Size() != int64(len(text)) {
		return false
	}
	old, err := w.directory.ReadFile(name)
	return err == nil && bytes.Equal(old, []byte(text))
}
