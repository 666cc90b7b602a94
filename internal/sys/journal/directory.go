package journal

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"sshpace/internal/sys/file"
	"sshpace/internal/sys/safedir"
)

// Directory is the path of a directory with journals to which the user gave no name; "" where the
// user has no place for them. It is out of other users' reach, and a journal of others in it is not
// ours to act on.
type Directory string

// Name is the name of a journal that begins at a time. Names sort by it.
func Name(begin time.Time, end string) string { return file.Stamp(begin) + end + Ending }

// Create makes a journal, for its one writer: its name has the time at which it begins, or the next
// one that is free. It makes the directory, if necessary.
func (d Directory) Create(begin time.Time, end string) (*os.File, error) {
	if d == "" {
		return nil, errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	directory, err := safedir.Make(string(d))
	if err != nil {
		return nil, err
	}
	defer directory.Close()
	for {
		f, err := directory.OpenFile(Name(begin, end), write|create, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return locked(f, err)
		}
		begin = begin.Add(time.Nanosecond)
	}
}

// Names lists our journals, the newest first. A missing directory has none.
func (d Directory) Names() (names []string, err error) {
	err = d.in(func(directory *safedir.Directory) (err error) {
		names, err = directory.Names(Ending)
		slices.Reverse(names)
		return err
	})
	return names, there(err)
}

// Open opens one of our journals for reading.
func (d Directory) Open(name string) (f *os.File, err error) {
	err = d.in(func(directory *safedir.Directory) (err error) {
		f, err = directory.Own(name)
		return err
	})
	return f, err
}

// Resume opens one of our journals for its one writer.
func (d Directory) Resume(name string) (f *os.File, err error) {
	err = d.in(func(directory *safedir.Directory) (err error) {
		f, err = locked(directory.OpenFile(name, write, 0))
		return err
	})
	return f, err
}

// Prune removes our journals but for the newest ones, when there are a tenth more: it examines all
// of them then. If most is not 0, it always does, and together they have no more bytes than that. A
// file whose name does not begin with a time is the user's, and stays; so does what is written now.
func (d Directory) Prune(keep int, most int64) error {
	return there(d.in(func(directory *safedir.Directory) error {
		if all, err := directory.Entries(Ending); err != nil || most == 0 && len(all) <= keep+keep/10 {
			return err
		}
		names, err := directory.Names(Ending)
		names = slices.DeleteFunc(names, func(name string) bool { return !stamped(name) })
		slices.Reverse(names)
		var bytes int64
		for i, name := range names {
			f, gone := directory.Own(name)
			if gone != nil { // another run prunes, too
				err = errors.Join(err, there(gone))
				continue
			}
			if info, unknown := f.Stat(); unknown == nil {
				bytes += info.Size()
			}
			if (i >= keep || most > 0 && bytes > most) && !Written(f) {
				err = errors.Join(err, there(directory.Remove(name)))
			}
			f.Close()
		}
		return err
	}))
}

// stamped reports whether a name begins with a time.
func stamped(name string) bool {
	stamp, _, zone := strings.Cut(name, "Z")
	return zone && file.IsStamp(stamp+"Z")
}

// in opens the directory for use.
func (d Directory) in(use func(*safedir.Directory) error) error {
	if d == "" {
		return fs.ErrNotExist
	}
	directory, err := safedir.Open(string(d))
	if err != nil {
		return err
	}
	defer directory.Close()
	return use(directory)
}

// there drops the error that something is missing.
func there(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
