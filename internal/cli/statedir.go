package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"sshpace/internal/sys/safedir"
)

// stateDir is a folder for what is to be kept; "" where the user has none.
func stateDir(name string) string {
	state := safedir.State(os.Getenv)
	if state == "" {
		return ""
	}
	return filepath.Join(state, name)
}

// resultsDir holds the results that the user gave no name.
func resultsDir() string { return stateDir("results") }

// makeStateDir makes such a folder, if need be, and makes sure that it is out of
// other users' reach and can be written.
func makeStateDir(dir string) error {
	if dir == "" || dir == "." {
		return usageError("name a file with --out FILE", "neither XDG_STATE_HOME nor HOME is set")
	}
	folder, err := safedir.Make(dir)
	if err != nil {
		return withHint(err, "make it yours alone, such as with chmod go-w, or name a file with --out FILE")
	}
	defer folder.Close()
	return withHint(folder.Writable(), "name a file with --out FILE")
}

// ownRecords lists the record files in such a folder that we own, sorted: a
// result that another user put there is not ours to act on. No folder means no
// files.
func ownRecords(dir string) ([]string, error) {
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
	names, err := folder.Names(".jsonl")
	for i, name := range names {
		names[i] = filepath.Join(folder.Path(), name)
	}
	return names, err
}
