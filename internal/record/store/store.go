// Package store finds and keeps files of records: results and the limits of
// machines, in the state folder or wherever the user says.
package store

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// Ending is that of result files.
const Ending = ".jsonl"

// Store is the state folder (XDG base directory specification); "" where the user
// has none.
type Store string

// Of is the store of a user.
func Of(getenv func(string) string) Store { return Store(safedir.State(getenv)) }

// Results is the folder of results that the user gave no name.
func (s Store) Results() string { return s.folder("results") }

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
	names, err := folder.Names(Ending)
	for i, name := range names {
		names[i] = filepath.Join(folder.Path(), name)
	}
	return names, err
}

// Newest finds the last result in the state folder.
func (s Store) Newest() (string, error) {
	paths, err := owned(s.Results()) // sorted, and names start with the time
	if err != nil {
		return "", fault.WithHint(err, "name the result that is meant")
	}
	if len(paths) == 0 {
		return "", fault.Usage("measure first: sshpace bench", "there is no result in %s", s.Results())
	}
	return paths[len(paths)-1], nil
}

// NewestOf is the newest result of a target in the state folder, or "".
func (s Store) NewestOf(label string) string {
	names, _ := owned(s.Results())
	for _, name := range slices.Backward(names) {
		file, err := os.Open(name)
		if err != nil {
			continue
		}
		for record, err := range record.Read(file) {
			if err == nil && record.Campaign != nil && record.Campaign.Target == label {
				file.Close()
				return name
			}
			break
		}
		file.Close()
	}
	return ""
}
