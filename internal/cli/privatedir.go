package cli

import (
	"errors"
	"fmt"

	"sshpace/internal/bench/helper"
	"sshpace/internal/sys/safedir"
)

// inMemory puts files into memory, if there is a directory for that.
var inMemory = safedir.WorkdirParams{InMemory: true}

// withDir calls use with a private directory of this run, which is removed even if sshpace is
// killed.
func withDir(sys System, p safedir.WorkdirParams, use func(*safedir.Workdir) error) error {
	p.Getenv, p.Keeper = sys.Getenv, helper.Line("keep")
	dir, err := safedir.NewWorkdir(p)
	if err != nil {
		return withHint(err, "set XDG_RUNTIME_DIR to a directory that, with all above it, only you and root can change; as root, use sudo -H or su -")
	}
	for _, path := range dir.Swept {
		fmt.Fprintf(sys.Stderr, "removed the rest of a killed run: %s\n", path)
	}
	return errors.Join(use(dir), dir.Close())
}
