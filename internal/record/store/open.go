package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/sys/journal"
)

// Load reads a result. Its hints are commands that show one.
func Load(path string) (*record.File, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return load(file, path)
}

// load reads a record file and describes its errors in words.
func load(r io.Reader, path string) (*record.File, error) {
	file, err := record.Load(r)
	if err != nil {
		return nil, &fault.Error{Err: fmt.Errorf("%s: %w", path, err), Hint: notAResult(path), Code: fault.Misuse}
	}
	return file, nil
}

func open(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fault.Usage(resultIn(path), "%s is a directory", path)
	}
	file, err := os.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Error{Err: err, Hint: nearResult(path), Code: fault.Misuse}
	case errors.Is(err, fs.ErrPermission):
		return nil, fault.WithHint(err, "read it as its owner or as root: sudo sshpace report "+shell.Word(path))
	}
	return file, fault.WithHint(err, "name a result of sshpace bench")
}

// notAResult returns the hint for a file with other content.
func notAResult(path string) string {
	return "results are the " + journal.Ending + " files that sshpace bench writes; a log of another program: sshpace import " + shell.Word(path) + " --out NEW" + journal.Ending
}

// resultIn returns the hint for a directory: its last result, or the last one of all.
func resultIn(directory string) string {
	paths, _ := filepath.Glob(filepath.Join(globEscape(directory), "*"+journal.Ending))
	if len(paths) > 0 {
		return "name a result in it: sshpace report " + shell.Word(paths[len(paths)-1])
	}
	return "there is no result in it; to measure: sshpace bench"
}

// nearResult returns the hint for a missing file.
func nearResult(path string) string {
	entries, _ := os.ReadDir(filepath.Dir(path))
	var names []string // without the common ending
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), journal.Ending); ok {
			names = append(names, name)
		}
	}
	if found := fault.NearNames(strings.TrimSuffix(filepath.Base(path), journal.Ending), names); len(found) > 0 {
		return "did you mean " + shell.Word(filepath.Join(filepath.Dir(path), found[0]+journal.Ending))
	}
	return "to make it: sshpace bench --out " + shell.Word(path)
}

// CheckHost returns the error of a bench whose host is the name of a result, or looks like one.
func CheckHost(name string) error {
	if !strings.HasSuffix(name, journal.Ending) {
		return nil
	}
	path := shell.Word(name)
	if !isRegular(name) {
		return fault.Usage(nearResult(name), "%s is neither a host nor a file", name)
	}
	return fault.Usage(fmt.Sprintf("to continue it: sshpace bench --resume %s; to show it: sshpace report %s", shell.Word(path), shell.Word(path)), "%s is a result, not a host", name)
}

// globEscape turns a path into a pattern that matches that path only.
func globEscape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// Find returns the file of a result by an argument: a path, a name in the state directory, or a
// host, which means its newest result of the kind; labelOf returns the name of a host in results.
func (s Store) Find(arg string, labelOf func(host string) (string, error), fits Kind) (string, error) {
	info, missing := os.Stat(arg)
	directory := missing == nil && info.IsDir() // a host may have the same name
	if kept := s.kept(arg); missing != nil && strings.HasSuffix(arg, journal.Ending) && filepath.Base(arg) == arg && kept != "" {
		return kept, nil
	}
	if missing == nil && !directory || strings.HasSuffix(arg, journal.Ending) {
		return arg, nil
	}
	label, err := labelOf(arg)
	if err != nil && !directory {
		return "", err
	}
	path := s.newestOf(label, fits)
	switch {
	case path == "" && directory:
		return arg, nil
	case path == "":
		return "", fault.Usage("measure it first: sshpace bench "+shell.Word(label), "there is no result of %s", label)
	}
	return path, nil
}

// Named returns the results of arguments: files, or hosts, whose newest results of a kind are
// meant. label returns the name of a host in results.
func (s Store) Named(args []string, label func(host string) (string, error), fits Kind) (paths []string, err error) {
	for _, arg := range args {
		path, err := s.Find(arg, label, fits)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Alike is Named with results of one kind, if there is one of which all hosts have results: the
// kind of the first host's newest result if possible.
func (s Store) Alike(args []string, label func(host string) (string, error)) ([]string, error) {
	paths, err := s.Named(args, label, Shows)
	if err != nil {
		return nil, err
	}
	all, one := kinds(), begun(paths[0])
	first := slices.IndexFunc(all, func(k Kind) bool { return k(one) })
	for _, k := range append(all[max(0, first):], all[:max(0, first)]...) {
		same, err := s.Named(args, label, k)
		if err == nil && !slices.ContainsFunc(same, func(path string) bool { return !k(begun(path)) }) {
			return same, nil
		}
	}
	return paths, nil
}

// Repeated returns the paths that are named more than once.
func Repeated(paths []string) (twice []string) {
	for i, path := range paths {
		if slices.Contains(paths[:i], path) && !slices.Contains(twice, path) {
			twice = append(twice, path)
		}
	}
	return twice
}
