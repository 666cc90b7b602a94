package cli

import (
	"errors"
	"fmt"

	"sshpace/internal/sys/safedir"
)

// inMemory is where files are in memory, where there is such a place.
var inMemory = safedir.WorkdirParams{InMemory: true}

// withDir has use do its work with a private folder, and leaves nothing behind.
func withDir(sys System, p safedir.WorkdirParams, use func(*safedir.Workdir) error) error {
	dir, err := newPrivateDir(sys, p)
	if err != nil {
		return err
	}
	err = use(dir)
	return errors.Join(err, dir.Close())
}

// newPrivateDir is a folder of this run, removed even if sshpace is killed.
func newPrivateDir(sys System, p safedir.WorkdirParams) (*safedir.Workdir, error) {
	p.Getenv, p.Keeper = sys.Getenv, helper("keep")
	dir, err := safedir.NewWorkdir(p)
	if err == nil {
		for _, path := range dir.Swept {
			fmt.Fprintf(sys.Stderr, "removed what a killed run had left behind: %s\n", path)
		}
	}
	return dir, withHint(err, "set XDG_RUNTIME_DIR to a directory that, with all above it, only you and root can change; as root, use sudo -H or su -")
}
