// Package store finds and keeps files of records: results and the limits of
// machines, in the state folder or wherever the user says.
package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/journal"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/sys/file"

	"sshpace/internal/sys/safedir"
)

// Store is the state folder (XDG base directory specification); "" where the user
// has none.
type Store string

// Of is the store of a user.
func Of(getenv func(string) string) Store { return Store(safedir.State(getenv)) }

// usual is where the state folder is in the home folder, unless XDG_STATE_HOME says
// otherwise.
const usual = "/.local/state/sshpace"

// Shown is a path as a user sees it: ~ stands for the home folder.
func (s Store) Shown(path string) string {
	home, known := strings.CutSuffix(string(s), usual)
	rest, inside := strings.CutPrefix(path, home+"/")
	if !known || !inside || home == "" {
		return path
	}
	return "~/" + rest
}

// Word is a result as a command that goes on with it takes it.
func (s Store) Word(path string) string {
	r := begun(path)
	return shell.Word(s.name(r, By(r.Command)))
}

// Name is a result as the shortest name by which Find finds it among those of a kind: its host if it
// is the newest one of it, its name where all results are, its path from here if it is below, or its path.
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

// Host is the host that a result is of; "" for one of loopback.
func (s Store) Host(path string) string {
	r := begun(path)
	if r.Server != record.ServerRemote {
		return ""
	}
	return r.Target
}

// kept is the file of this name that the user gave none; "" if there is none.
func (s Store) kept(name string) string {
	for _, dir := range []string{s.results(), s.Machines()} {
		if path := filepath.Join(dir, name); s != "" && isRegular(path) {
			return path
		}
	}
	return ""
}

// results is the folder of results that the user gave no name.
func (s Store) results() string { return s.folder("results") }

// Machines is the folder of limits that the user gave no name.
func (s Store) Machines() string { return s.folder("machines") }

func (s Store) folder(name string) string {
	if s == "" {
		return ""
	}
	return filepath.Join(string(s), name)
}

// Make makes such a folder, if need be, and makes sure that it is out of
// other users' reach and can be written.
func Make(dir string) error {
	if dir == "" || dir == "." {
		return fault.Usage("name a file with --out FILE", "neither XDG_STATE_HOME nor HOME is set")
	}
	folder, err := safedir.Make(dir)
	if err != nil {
		return fault.WithHint(err, "make it yours alone, such as with chmod go-w, or name a file with --out FILE")
	}
	defer folder.Close()
	return fault.WithHint(folder.Writable(), "name a file with --out FILE")
}

// owned lists the record files in such a folder that we own, sorted: a
// result that another user put there is not ours to act on. No folder means no
// files.
func owned(dir string) ([]string, error) {
	if dir == "" {
		return nil, nil
	}
	folder, err := safedir.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	names, err := folder.Names(journal.Ending)
	for i, name := range names {
		names[i] = filepath.Join(folder.Path(), name)
	}
	return names, err
}

// last is the file that names the last result, wherever that is.
func (s Store) last() string { return filepath.Join(string(s), "last-result") }

// maxName is the longest name of a file (PATH_MAX of Linux), in bytes.
const maxName = 4096

// remember keeps the name of a new result. Where that cannot be kept, results with
// names of their own are not found again, which is no reason to measure nothing.
func (s Store) remember(path string) {
	if whole, err := filepath.Abs(path); err == nil && Make(string(s)) == nil {
		_ = file.Replace(s.last(), []byte(whole), 0o600)
	}
}

// remembered is that result, if it is still there; else "".
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

// Newest finds the last result: that of the last run, wherever it was written, else
// the last one in the state folder.
func (s Store) Newest() (string, error) {
	return s.newest(func(result) bool { return true })
}

// NewestRanking finds the last result that ranks ciphers.
func (s Store) NewestRanking() (string, error) { return s.newest(Ranks) }

func (s Store) newest(fits Kind) (string, error) {
	if last := s.remembered(); last != "" && fits(begun(last)) {
		return last, nil
	}
	paths, err := owned(s.results()) // sorted, and names start with the time
	if err != nil {
		return "", fault.WithHint(err, "name the result")
	}
	for _, path := range slices.Backward(paths) {
		if fits(begun(path)) {
			return path, nil
		}
	}
	return "", fault.Usage("measure first: sshpace bench", "there is no result in %s", s.results())
}

// Known are the results in the state folder, and the targets that they are of.
func (s Store) Known() (names []string) {
	paths, _ := owned(s.results())
	for _, path := range slices.Backward(paths) {
		if label := begun(path).Target; label != "" && !slices.Contains(names, label) {
			names = append(names, label)
		}
	}
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

// result is a file of records, and the campaign with which it begins: empty if it does not.
type result struct {
	path string
	record.Campaign
}

// begun reads how a result begins.
func begun(path string) result {
	r := result{path: path}
	r.holds(func(first record.Record) bool {
		if first.Campaign != nil {
			r.Campaign = *first.Campaign
		}
		return true
	})
	return r
}

// holds reports whether some record of a result is one of those that are looked for.
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

// Kind tells whether a result is of a kind.
type Kind func(result) bool

// By is what a command measured.
func By(command string) Kind {
	return func(r result) bool { return r.Command == command }
}

// kinds are those of figures: a result is compared with those of its own.
func kinds() []Kind {
	return []Kind{
		Ranks,
		func(r result) bool { return r.holds(func(r record.Record) bool { return r.Run != nil }) },
		func(r result) bool { return r.holds(func(r record.Record) bool { return r.LoginRun != nil }) },
	}
}

// newestOf is the newest result of a kind of a target in the state folder, "" if there is none.
func (s Store) newestOf(label string, fits Kind) string {
	names, _ := owned(s.results())
	for _, name := range slices.Backward(names) {
		if r := begun(name); r.Target == label && fits(r) {
			return name
		}
	}
	return ""
}

// Ranks reports whether a result holds transfers of ciphers. One that failed, or is about
// something else, hides no older one.
func Ranks(r result) bool {
	return r.Combos.Bulk > 0 && r.holds(func(r record.Record) bool {
		return r.Slices != nil || r.Sample != nil && r.Sample.Outcome == record.OK && r.Sample.Bytes > 0
	})
}

// Shows reports whether a result holds anything that was measured.
func Shows(r result) bool {
	return r.holds(func(r record.Record) bool {
		return r.Slices != nil || r.Sample != nil && r.Sample.Outcome == record.OK || r.Measurement != nil || r.Run != nil || r.LoginRun != nil
	})
}

// Label is what a file is called: its name, or its path where another one has the
// same name.
func Label(paths []string, path string) string {
	base := filepath.Base(path)
	for _, other := range paths {
		if other != path && filepath.Base(other) == base {
			return path
		}
	}
	return base
}
