package legacy

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
)

// Open reads one log; "-" is standard input.
func Open(path string, stdin io.Reader, o Options) (*Result, error) {
	if path == "-" {
		o.Name = "stdin"
		return Read(stdin, o)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		o.Modified = info.ModTime().UTC()
	}
	base := filepath.Base(path)
	o.Name = strings.TrimSuffix(base, filepath.Ext(base))
	return Read(file, o)
}

// Explain shows the lines of a file that gave no result, and explains why.
func Explain(w io.Writer, path string, err error, all bool) error {
	if e, ok := errors.AsType[*UnusableError](err); ok {
		WriteUnread(w, path, e.Unread, e.Lines, all)
		return fault.Usage(e.Hint, "%s: %s", path, e.Why)
	}
	switch {
	case errors.Is(err, ErrResult):
		return fault.Usage("look at it: sshpace report "+shell.Word(path), "%s: %s", path, err)
	case errors.Is(err, fs.ErrNotExist):
		return &fault.Error{Err: err, Hint: "name the log", Code: fault.Misuse}
	}
	return fault.WithHint(err, "name a log that you may read")
}
