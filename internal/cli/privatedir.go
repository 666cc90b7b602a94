package cli

import (
	"errors"
	"fmt"

	"sshpace/internal/bench/helper"
	"sshpace/internal/sys/safedir"
)

// inMemory is where files are in memory, where there is such a place.
var inMemory = safedir.WorkdirParams{InMemory: true}

// withDir has use do its work with a private directory of this run, which is removed even if
// sshpace is killed.
func withDir(sys System, p safedir.WorkdirParams, use func(*safedir.Workdir) error) error {
	p.Getenv, p.Keeper = sys.Getenv, helper.Line("keep")
	dir, err := safedir.NewWorkdir(p)
	if err != nil {
		return withHint(err, "set XDG_RUNTIME_DIR to a directory that, with all above it, only you and root can change; as root, use sudo -H or su -")
	}
	for _, path := range dir.Swept {
		fmt.Fprintf(sys.Stderr, "removed what a killed run had left behind: %s\n", path)
	}
	return errors.Join(use(dir), dir.Close())
}
