package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/shell"
	"sshpace/internal/record"
)

// recordFile is an open file of records, locked against a second writer.
type recordFile struct {
	*os.File
	old *record.File // what a resumed file held; nil for a new one
}

// maxTargetName is how much of a target's name goes into a file name, which
// has 255 bytes at most on common file systems.
const maxTargetName = 100

// defaultRecordPath names a result that the user gave no name: in the state
// folder (XDG base directory specification), newest last by name.
func defaultRecordPath(target string, now time.Time) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_@", r) {
			return r
		}
		return '_'
	}, target)
	safe = safe[:min(len(safe), maxTargetName)] // ASCII by now
	return filepath.Join(resultsDir(), fmt.Sprintf("%s-%s.jsonl", now.UTC().Format("20060102T150405.000Z"), safe))
}

// createRecordFile makes a new file for a run, which can be gone on with. Where
// path is "", one in the state folder.
func createRecordFile(path, target string) (*recordFile, error) {
	if path == "" {
		path = defaultRecordPath(target, time.Now())
		if err := makeStateDir(filepath.Dir(path)); err != nil {
			return nil, err
		}
	}
	return newRecordFile(path, "choose another name, or go on with it: --resume "+path)
}

// newRecordFile makes a file that must not exist yet, in a folder that must;
// taken is the hint where it exists.
func newRecordFile(path, taken string) (*recordFile, error) {
	if err := checkNew(path, taken); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, withHint(err, "name a file that you may write with --out FILE")
	}
	return &recordFile{File: f}, lock(f)
}

// checkNew says what keeps a file from being made, before the work that goes into
// it is done.
func checkNew(path, taken string) error {
	if dir := filepath.Dir(path); !isFolder(dir) {
		return usageError("make it first, or name another file with --out FILE", "there is no folder %s for %s", dir, filepath.Base(path))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usageError("name a file in it: --out "+shell.Word(filepath.Join(path, "result"+recordEnding)), "%s is a folder", path)
	}
	if _, err := os.Lstat(path); err == nil && !isRegular(path) {
		return usageError("name a new file with --out FILE: records are appended to it, and read again", "%s is not a file", path)
	} else if err == nil {
		return usageError(taken, "%s exists already", path)
	}
	return nil
}

// isFolder reports whether path is a folder, or cannot be looked at.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return info.IsDir()
}

// standardOutput is the name of a result that goes there.
const standardOutput = "-"

// anotherName is the hint where a whole result exists: nothing goes on with it.
const anotherName = "choose another name with --out FILE"

// writeRecords writes a whole result: to a new file, or to standard output where
// path is "-".
func writeRecords(sys System, path string, records []record.Record) error {
	if path == standardOutput {
		return putRecords(sys.Stdout, records)
	}
	file, err := newRecordFile(path, anotherName)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := putRecords(file, records); err != nil {
		return err
	}
	return file.Sync()
}

func putRecords(w io.Writer, records []record.Record) error {
	sink := record.Write(w)
	for _, r := range records {
		if err := sink(r); err != nil {
			return err
		}
	}
	return nil
}

// resumeRecordFile opens a file to go on with, and makes it end with a whole
// line: a last line that was not finished is cut off, and one that only lacks
// its line end gets it.
func resumeRecordFile(path string) (*recordFile, error) {
	const hint = "name a result of sshpace bench with --resume FILE"
	if _, err := os.Stat(path); err == nil && !isRegular(path) {
		return nil, usageError(hint, "%s is not a file", path)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, withHint(err, hint)
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	old, err := loadRecords(f, path)
	if err == nil {
		err = mendLastLine(f, old.Truncated)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return &recordFile{File: f, old: old}, nil
}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return &Error{What: f.Name() + " is being written by another sshpace", Hint: "wait for it, or choose another file", Code: ExitUsage}
	}
	return nil // file systems without locks are fine
}

// loadRecords reads a record file and says in words what is wrong with it.
func loadRecords(r io.Reader, name string) (*record.File, error) {
	file, err := record.Load(r)
	if err != nil {
		return nil, &Error{What: fmt.Sprintf("%s: %v", name, err), Hint: "results are the .jsonl files that sshpace bench writes", Code: ExitUsage}
	}
	return file, nil
}

// mendLastLine removes what stands after the last line end, if cut says that it
// is no record, or ends it, and leaves f at its end.
func mendLastLine(f *os.File, cut bool) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, record.MaxLine+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	keep := size - int64(len(tail)) + int64(bytes.LastIndexByte(tail, '\n')) + 1
	switch {
	case keep == size:
		return nil
	case !cut:
		_, err := f.Write([]byte("\n"))
		return err
	}
	if err := f.Truncate(keep); err != nil {
		return err
	}
	_, err = f.Seek(keep, io.SeekStart)
	return err
}

// newestRecordFile finds the last result in the state folder.
func newestRecordFile() (string, error) {
	paths, err := ownRecords(resultsDir()) // sorted, and names start with the time
	if err != nil {
		return "", withHint(err, "name the result that is meant")
	}
	if len(paths) == 0 {
		return "", usageError("measure first: sshpace bench", "there is no result in %s", resultsDir())
	}
	return paths[len(paths)-1], nil
}
