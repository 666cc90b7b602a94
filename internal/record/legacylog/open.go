package legacylog

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

// Explain shows the lines of a file that nothing came of, and says why.
func Explain(w io.Writer, path string, err error, all bool) error {
	var foreign *ForeignError
	var size *SizeError
	var empty *EmptyError
	e := &fault.Error{What: path + ": " + err.Error(), Err: err, Code: fault.Misuse}
	switch {
	case errors.As(err, &foreign):
		WriteUnread(w, path, foreign.Unread, foreign.Lines, all)
		e.Hint = "formats: " + strings.Join(Formats(), ", ")
	case errors.As(err, &size):
		e.Hint = "say it with --size, such as --size 4G"
	case errors.As(err, &empty):
		WriteUnread(w, path, empty.Unread, empty.Lines, all)
		e.Hint = "use the log itself, not a page that shows it"
	case errors.Is(err, ErrResult):
		e.Hint = "look at it: sshpace report " + shell.Word(path)
	case errors.Is(err, fs.ErrNotExist):
		e.What, e.Hint = "", "name the log"
	default:
		return fault.WithHint(err, "name a log that you may read")
	}
	return e
}
