package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sshpace/internal/fleet"
	"sshpace/internal/sys/safedir"
)

// Files writes each host's bytes unchanged into NAME.out and NAME.err in one directory. Files are
// 0600 and exist only for hosts that sent something; older ones of the same name are replaced. Few
// are open at the same time, however many hosts there are.
type Files struct {
	fleet.Nothing
	root  *os.Root
	limit int

	open  map[string]*os.File // by file name
	order []string            // of them, the one opened last at the end
	made  map[string]bool     // files of this run
	lost  map[string]error    // files that end early, and why
}

var _ fleet.Sink = (*Files)(nil)

// DefaultOpenFiles is the default number of open files.
const DefaultOpenFiles = 64

// OpenFiles prepares a directory, which is made 0700 if necessary. maxOpen bounds the open files; 0
// is DefaultOpenFiles. A directory that others can change, or in which no file can be made, is
// refused.
func OpenFiles(dir string, maxOpen int) (*Files, error) {
	directory, err := safedir.Make(dir)
	if err != nil {
		return nil, fmt.Errorf("directory for output: %w", err)
	}
	if err := directory.Writable(); err != nil {
		return nil, errors.Join(fmt.Errorf("directory for output: %w", err), directory.Close())
	}
	if maxOpen <= 0 {
		maxOpen = DefaultOpenFiles
	}
	return &Files{root: directory.Root, limit: maxOpen, open: map[string]*os.File{}, made: map[string]bool{}, lost: map[string]error{}}, nil
}

// Output appends to the host's file.
func (f *Files) Output(e fleet.Event) error {
	return f.Append(FileName(e.Host)+[2]string{".out", ".err"}[e.Stream], e.Data)
}

// Append makes a file longer. After an error the file keeps the beginning of the output.
func (f *Files) Append(name string, data []byte) error {
	if f.lost[name] == nil {
		file, err := f.file(name)
		if err == nil {
			_, err = file.Write(data)
		}
		if err != nil {
			f.lost[name] = errors.Join(err, f.close(name))
		}
	}
	return Loss(f.lost[name])
}

// Done closes the host's files.
func (f *Files) Done(r fleet.Result, _ fleet.Summary) error {
	name := FileName(r.Host.String())
	return cmp.Or(f.Close(name+".out"), f.Close(name+".err"))
}

// Close reports that a file is complete.
func (f *Files) Close(name string) error {
	delete(f.lost, name)
	return Loss(f.close(name))
}

// End closes open files.
func (f *Files) End(fleet.Summary) error {
	var errs []error
	for name := range f.open {
		errs = append(errs, f.close(name))
	}
	return errors.Join(append(errs, f.root.Close())...)
}

// file returns the open file with that name, opening it and closing another one as needed.
func (f *Files) file(name string) (*os.File, error) {
	if file := f.open[name]; file != nil {
		return file, nil
	}
	if len(f.open) >= f.limit {
		if err := f.close(f.order[0]); err != nil {
			return nil, err
		}
	}
	file, err := f.openFile(name)
	if err != nil {
		return nil, err
	}
	f.open[name], f.order = file, append(f.order, name)
	return file, nil
}

// openFile makes the file when the run first needs it, replacing an older one instead of writing
// through it, and reopens it later.
func (f *Files) openFile(name string) (*os.File, error) {
	if f.made[name] {
		return f.root.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := f.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		f.made[name] = true
	}
	return file, err
}

func (f *Files) close(name string) error {
	file := f.open[name]
	if file == nil {
		return nil
	}
	delete(f.open, name)
	f.order = slices.DeleteFunc(f.order, func(other string) bool { return other == name })
	return file.Close()
}

// maxFileName leaves room for the suffix within the 255 bytes of most file systems.
const maxFileName = 240

// FileName turns a host's text into a file name: letters, digits and . _ - @ + stay, everything
// else becomes %XX, as does a dot in front. Names that would be too long end with a hash, so that
// different hosts never share a file.
func FileName(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c == '.' && i == 0 || !fileSafe(c) {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	name := b.String()
	if len(name) <= maxFileName {
		return name
	}
	return name[:maxFileName-17] + "~" + shortHash(text)
}

func fileSafe(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || strings.IndexByte("._-@+", c) >= 0
}
