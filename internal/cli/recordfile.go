package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/adrg/xdg"
	"golang.org/x/sys/unix"

	"sshpace/internal/bench"
)

// recordFile is an open file of records, locked against a second writer.
type recordFile struct {
	*os.File
	old *bench.File // what a resumed file held; nil for a new one
}

// defaultRecordPath names a result that the user gave no name: in the state
// folder (XDG base directory specification), newest last by name.
func defaultRecordPath(target string, now time.Time) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(".-_@", r) {
			return r
		}
		return '_'
	}, target)
	return filepath.Join(xdg.StateHome, "sshpace", "results", fmt.Sprintf("%s-%s.jsonl", now.UTC().Format("20060102T150405.000Z"), safe))
}

// createRecordFile makes a new file. Where path is "", one in the state folder.
func createRecordFile(path, target string) (*recordFile, error) {
	if path == "" {
		path = defaultRecordPath(target, time.Now())
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, withHint(fmt.Errorf("make the folder for results: %w", err), "name a file with --out FILE")
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, usageError("choose another name, or go on with it: --resume "+path, "%s exists already", path)
	}
	if err != nil {
		return nil, withHint(err, "name a file that you may write with --out FILE")
	}
	return &recordFile{File: f}, lock(f)
}

// resumeRecordFile opens a file to go on with, and cuts off a last line that
// was not finished.
func resumeRecordFile(path string) (*recordFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, withHint(err, "name a result of sshpace bench with --resume FILE")
	}
	if err := lock(f); err != nil {
		f.Close()
		return nil, err
	}
	old, err := loadRecords(f, path)
	if err == nil && old.Truncated {
		err = cutLastLine(f)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	_, err = f.Seek(0, io.SeekEnd)
	return &recordFile{File: f, old: old}, err
}

func lock(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return &Error{What: f.Name() + " is being written by another sshpace", Hint: "wait for it, or choose another file", Code: ExitUsage}
	}
	return nil // file systems without locks are fine
}

// loadRecords reads a record file and says in words what is wrong with it.
func loadRecords(r io.Reader, name string) (*bench.File, error) {
	file, err := bench.Load(r)
	if err != nil {
		return nil, &Error{What: fmt.Sprintf("%s: %v", name, err), Hint: "results are the .jsonl files that sshpace bench writes", Code: ExitUsage}
	}
	return file, nil
}

// cutLastLine removes what stands after the last line end.
func cutLastLine(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	tail := make([]byte, min(size, bench.MaxLine+1))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	keep := size - int64(len(tail)) + int64(strings.LastIndexByte(string(tail), '\n')) + 1
	return f.Truncate(keep)
}

// newestRecordFile finds the last result in the state folder.
func newestRecordFile() (string, error) {
	dir := filepath.Join(xdg.StateHome, "sshpace", "results")
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(names) == 0 {
		return "", usageError("measure first: sshpace bench", "there is no result in %s", dir)
	}
	return names[len(names)-1], nil // Glob sorts, and names start with the time
}
