package output

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/fleet"
	"sshpace/internal/sys/safedir"
)

// Files writes each host's bytes unchanged into NAME.out and NAME.err in one directory, or in one
// of its own. Files are 0600 and exist only for hosts that sent something; older ones of the same
// name are replaced. Few are open at the same time, however many hosts there are.
type Files struct {
	fleet.Nothing
	dirs  []string // one for all, or one for each host
	limit int

	open  map[string]*os.File // by file name
	order []string            // of them, the one opened last at the end
	made  map[string]bool     // files of this run
	lost  map[string]error    // files that end early, and why
}

var _ fleet.Sink = (*Files)(nil)

// DefaultOpenFiles is the default number of open files.
const DefaultOpenFiles = 64

// OpenFiles prepares a directory, or one for each host. They are made 0700 if necessary. maxOpen
// bounds the open files; 0 is DefaultOpenFiles. A directory that others can change, or in which no
// file can be made, is refused.
func OpenFiles(maxOpen int, dirs ...string) (*Files, error) {
	for _, dir := range slices.Compact(slices.Sorted(slices.Values(dirs))) {
		directory, err := safedir.Make(dir)
		if err == nil {
			err = errors.Join(directory.Writable(), directory.Close())
		}
		if err != nil {
			return nil, fmt.Errorf("directory for output: %w", err)
		}
	}
	if maxOpen <= 0 {
		maxOpen = DefaultOpenFiles
	}
	return &Files{dirs: dirs, limit: maxOpen, open: map[string]*os.File{}, made: map[string]bool{}, lost: map[string]error{}}, nil
}

// named returns the path of a host's files, without its end.
func (f *Files) named(index int, host string) string {
	return filepath.Join(f.dirs[min(index, len(f.dirs)-1)], FileName(host))
}

// Output appends to the host's file.
func (f *Files) Output(e fleet.Event) error {
	return f.append(f.named(e.Index, e.Host)+[2]string{".out", ".err"}[e.Stream], e.Data)
}

// Append makes a file in the only directory longer.
func (f *Files) Append(name string, data []byte) error {
	return f.append(filepath.Join(f.dirs[0], name), data)
}

// append makes a file longer. After an error the file keeps the beginning of the output.
func (f *Files) append(name string, data []byte) error {
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
	name := f.named(r.Index, r.Host.String())
	return cmp.Or(f.complete(name+".out"), f.complete(name+".err"))
}

// Close reports that a file in the only directory is complete.
func (f *Files) Close(name string) error { return f.complete(filepath.Join(f.dirs[0], name)) }

func (f *Files) complete(name string) error {
	delete(f.lost, name)
	return Loss(f.close(name))
}

// End closes open files.
func (f *Files) End(fleet.Summary) error {
	var errs []error
	for name := range f.open {
		errs = append(errs, f.close(name))
	}
	return errors.Join(errs...)
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
	directory, err := safedir.Open(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	base := filepath.Base(name)
	if f.made[name] {
		return directory.OpenFile(base, os.O_WRONLY|os.O_APPEND, 0o600)
	}
	if err := directory.Remove(base); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	file, err := directory.Create(base)
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
