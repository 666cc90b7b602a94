package store

import (
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/sys/journal"
)

// File is an open file of records, locked against a second writer.
type File struct {
	*os.File
	path string
	Old  *record.File // content of a resumed file; nil for a new one
}

// Name returns the path of the file, as the user names it.
func (f *File) Name() string { return f.path }

// maxTargetName is the most of a target's name that goes into a file name, which has 255 bytes at
// most on common file systems.
const maxTargetName = 100

// label names a target in the name of a file.
func label(target string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_@", r) {
			return r
		}
		return '_'
	}, target)
	return "-" + safe[:min(len(safe), maxTargetName)] // ASCII by now
}

// Create makes a new file for a run that can be resumed. If path is "", the file goes to the state
// directory.
func (s Store) Create(path, target string) (*File, error) {
	file, err := newFile(path, orContinue+path)
	if path == "" {
		file, err = unnamed(s.results(), label(target))
	}
	if err == nil {
		s.remember(file.path)
	}
	return file, err
}

// unnamed makes a file to which the user gave no name.
func unnamed(dir, end string) (*File, error) {
	if err := Make(dir); err != nil {
		return nil, err
	}
	f, err := journal.Directory(dir).Create(time.Now(), end)
	if err != nil {
		return nil, err
	}
	return &File{File: f, path: filepath.Join(dir, filepath.Base(f.Name()))}, nil
}

// orContinue is the hint where a resumable result exists.
const orContinue = "choose another name, or continue it: --resume "

// CheckResult returns the error that Create would have, before the work is done.
func CheckResult(path string) error {
	if path == "" {
		return nil
	}
	return CheckNew(path, orContinue+path)
}

// newFile makes a file that must not exist yet, in a directory that must; taken is the hint where
// it exists.
func newFile(path, taken string) (*File, error) {
	if err := CheckNew(path, taken); err != nil {
		return nil, err
	}
	f, err := journal.New(path)
	if err != nil {
		return nil, fault.WithHint(err, "name a file that you may write with --out FILE")
	}
	return &File{File: f, path: path}, nil
}

// CheckPlace returns an error if the directory of a file is missing.
func CheckPlace(path string) error {
	if dir := filepath.Dir(path); !isDirectory(dir) {
		return fault.Usage("make it first, or name another file with --out FILE", "there is no directory %s for %s", dir, filepath.Base(path))
	}
	return nil
}

// CheckNew returns the error of creating a file, before the work is done.
func CheckNew(path, taken string) error {
	if err := CheckPlace(path); err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fault.Usage("name a file in it: --out "+shell.Word(filepath.Join(path, "result"+journal.Ending)), "%s is a directory", path)
	}
	if _, err := os.Lstat(path); err == nil && !isRegular(path) {
		return fault.Usage("name a new file with --out FILE: records are appended to it, and read again", "%s is not a file", path)
	} else if err == nil {
		return fault.Usage(taken, "%s exists already", path)
	}
	return nil
}

// isDirectory reports whether path is a directory, or cannot be examined.
func isDirectory(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return info.IsDir()
}

// StandardOutput is the name of a result on standard output.
const StandardOutput = "-"

// AnotherName is the hint where a result exists that cannot be resumed.
const AnotherName = "choose another name with --out FILE"

// Write writes a whole result: to a new file, or to standard output where path is "-".
func Write(stdout io.Writer, path string, records []record.Record) error {
	if path == StandardOutput {
		return Put(stdout, records)
	}
	file, err := newFile(path, AnotherName)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := Put(file, records); err != nil {
		return err
	}
	return file.Sync()
}

// Put writes records one after the other.
func Put(w io.Writer, records []record.Record) error {
	sink := record.Write(w)
	for _, r := range records {
		if err := sink(r); err != nil {
			return err
		}
	}
	return nil
}

// Resume opens a file to continue, and makes it end with a whole line: an unfinished last line is
// removed, and one that only lacks its line end gets it.
func Resume(path string) (*File, error) {
	const hint = "name a result of sshpace with --resume FILE"
	if _, err := os.Stat(path); err == nil && !isRegular(path) {
		return nil, fault.Usage(hint, "%s is not a file", path)
	}
	f, err := journal.Resume(path)
	if err != nil {
		return nil, &fault.Error{Err: err, Hint: cmp.Or(fault.HintOf(err), hint), Code: fault.Misuse}
	}
	old, err := load(f, path)
	if err == nil {
		err = journal.Continue(f, old.Truncated)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &File{File: f, path: path, Old: old}, nil
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
