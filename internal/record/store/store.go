// Package store finds and keeps files of records: results and the limits of machines, in the state
// directory or wherever the user wants.
package store

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/journal"
	"sshpace/internal/sys/safedir"
)

// Store is the state directory (XDG base directory specification); "" where the user has none.
type Store string

// Of returns the store of a user.
func Of(getenv func(string) string) Store { return Store(safedir.State(getenv)) }

// usual is the state directory within the home directory, unless XDG_STATE_HOME is set.
const usual = "/.local/state/sshpace"

// Shown shortens a path for a user: ~ stands for the home directory.
func (s Store) Shown(path string) string {
	home, known := strings.CutSuffix(string(s), usual)
	rest, inside := strings.CutPrefix(path, home+"/")
	if !known || !inside || home == "" {
		return path
	}
	return "~/" + rest
}

// Word returns the argument by which a command that resumes finds a result.
func (s Store) Word(path string) string {
	r := begun(path)
	return shell.Word(s.name(r, By(r.Command)))
}

// Name returns the shortest name by which Find finds a result among those of a kind: its host if it
// is the newest one of it, its name if it is in the directory of results, its path from here if it
// is below, or its path.
func (s Store) Name(path string, fits Kind) string { return s.name(begun(path), fits) }

func (s Store) name(r result, fits Kind) string {
	if r.Target != "" && s.newestOf(r.Target, fits) == r.path {
		return r.Target
	}
	if name := filepath.Base(r.path); s.kept(name) == r.path {
		return name
	}
	here, _ := os.Getwd()
	if below, found := strings.CutPrefix(r.path, here+"/"); found && here != "" {
		return below
	}
	return r.path
}

// Host returns the host of a result; "" for loopback.
func (s Store) Host(path string) string {
	r := begun(path)
	if r.Server != record.ServerRemote {
		return ""
	}
	return r.Target
}

// kept returns the file with this name in the directory of unnamed results; "" if there is none.
func (s Store) kept(name string) string {
	for _, dir := range []string{s.results(), s.Machines()} {
		if path := filepath.Join(dir, name); s != "" && isRegular(path) {
			return path
		}
	}
	return ""
}

// results is the directory of results to which the user gave no name.
func (s Store) results() string { return s.directory("results") }

// Machines is the directory of limits to which the user gave no name.
func (s Store) Machines() string { return s.directory("machines") }

func (s Store) directory(name string) string {
	if s == "" {
		return ""
	}
	return filepath.Join(string(s), name)
}

// Make makes a directory of results, if necessary, and checks that no other user can write there
// and that we can.
func Make(dir string) error {
	if dir == "" || dir == "." {
		return fault.Usage("name a file with --out FILE", "neither XDG_STATE_HOME nor HOME is set")
	}
	directory, err := safedir.Make(dir)
	if err != nil {
		return fault.WithHint(err, "make it yours alone, such as with chmod go-w, or name a file with --out FILE")
	}
	defer directory.Close()
	return fault.WithHint(directory.Writable(), "name a file with --out FILE")
}

// owned lists the record files in such a directory that we own, the newest first.
func owned(dir string) ([]string, error) {
	names, err := journal.Directory(dir).Names()
	for i, name := range names {
		names[i] = filepath.Join(dir, name)
	}
	return names, err
}

// last is the file with the path of the last result.
func (s Store) last() string { return filepath.Join(string(s), "last-result") }

// maxName is the longest name of a file (PATH_MAX of Linux), in bytes.
const maxName = 4096

// remember saves the path of a new result. If that fails, results with names from the user are not
// found again, which is not a reason to measure nothing.
func (s Store) remember(path string) {
	if whole, err := filepath.Abs(path); err == nil && Make(string(s)) == nil {
		_ = file.Replace(s.last(), []byte(whole), 0o600)
	}
}

// remembered returns the path of the last result, if that is still there; otherwise "".
func (s Store) remembered() string {
	info, err := os.Lstat(s.last())
	if s == "" || err != nil || !info.Mode().IsRegular() {
		return ""
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Getuid() {
		return ""
	}
	name, err := file.ReadFile(s.last(), maxName)
	if err != nil || !isRegular(string(name)) {
		return ""
	}
	return string(name)
}

// Newest finds the last result: that of the last run, wherever it was written, otherwise the last
// one in the state directory.
func (s Store) Newest() (string, error) {
	return s.newest(func(result) bool { return true })
}

// NewestRanking finds the last result that ranks ciphers.
func (s Store) NewestRanking() (string, error) { return s.newest(Ranks) }

func (s Store) newest(fits Kind) (string, error) {
	if last := s.remembered(); last != "" && fits(begun(last)) {
		return last, nil
	}
	path, err := s.newestUnnamed(fits)
	if path == "" && err == nil {
		return "", fault.Usage("measure first: sshpace bench", "there is no result in %s", s.results())
	}
	return path, fault.WithHint(err, "name the result")
}

// newestUnnamed returns the newest result of a kind in the state directory, "" if there is none.
func (s Store) newestUnnamed(fits Kind) (string, error) {
	paths, err := owned(s.results())
	i := slices.IndexFunc(paths, func(path string) bool { return fits(begun(path)) })
	if i < 0 {
		return "", err
	}
	return paths[i], nil
}

// Known returns the names by which recorded results can be opened: the measured hosts, newest
// first, and the files.
func (s Store) Known() (names []string) {
	paths, _ := owned(s.results())
	for _, path := range paths {
		if label := begun(path).Target; label != "" && !slices.Contains(names, label) {
			names = append(names, label)
		}
	}
	for _, path := range slices.Backward(paths) {
		names = append(names, filepath.Base(path))
	}
	return names
}

// result is a file of records with the campaign at its beginning: empty if there is none.
type result struct {
	path string
	record.Campaign
}

// begun reads the beginning of a result.
func begun(path string) result {
	r := result{path: path}
	r.holds(func(first record.Record) bool {
		if c, is := first.(*record.Campaign); is {
			r.Campaign = *c
		}
		return true
	})
	return r
}

// holds reports whether some record of a result is wanted.
func (r result) holds(wanted func(record.Record) bool) bool {
	file, err := os.Open(r.path)
	if err != nil {
		return false
	}
	defer file.Close()
	for r, err := range record.Read(file) {
		if err == nil && wanted(r) {
			return true
		}
	}
	return false
}

// Kind reports whether a result is of a kind.
type Kind func(result) bool

// By is the kind of results that a command measured.
func By(command string) Kind {
	return func(r result) bool { return r.Command == command }
}

// kinds are the kinds of figures: a result is compared with others of its kind.
func kinds() []Kind {
	return []Kind{
		Ranks,
		func(r result) bool { return r.read(func(x *record.Reading) bool { return x.Kind != "" }) }, // of methods
		func(r result) bool { return r.read(func(x *record.Reading) bool { return x.Kind == "" }) }, // of logins
	}
}

// read reports whether a result holds a wanted reading.
func (r result) read(wanted func(*record.Reading) bool) bool {
	return r.holds(func(r record.Record) bool { x, is := r.(*record.Reading); return is && wanted(x) })
}

// newestOf returns the newest result of a kind and a target in the state directory, "" if there is
// none.
func (s Store) newestOf(label string, fits Kind) string {
	path, _ := s.newestUnnamed(func(r result) bool { return r.Target == label && fits(r) })
	return path
}

// Ranks reports whether a result holds transfers of ciphers. A failed result, or one about
// something else, does not hide an older one.
func Ranks(r result) bool {
	return r.Combos.Bulk > 0 && r.holds(func(r record.Record) bool {
		switch r := r.(type) {
		case *record.Sample:
			return r.Outcome == record.OK && r.Bytes > 0
		case *record.Slices:
			return true
		}
		return false
	})
}

// Shows reports whether a result holds any measurement.
func Shows(r result) bool {
	return r.holds(func(r record.Record) bool {
		switch r := r.(type) {
		case *record.Sample:
			return r.Outcome == record.OK
		case *record.Slices, *record.Measurement, *record.Reading:
			return true
		}
		return false
	})
}

// Label returns the short name of a file: its base name, or its path where another one has the same
// name.
func Label(paths []string, path string) string {
	base := filepath.Base(path)
	for _, other := range paths {
		if other != path && filepath.Base(other) == base {
			return path
		}
	}
	return base
}
