package cli

import (
	"fmt"

	"sshpace/internal/sys/safedir"
)

// privateDir is a folder of this run, removed even if sshpace is killed.
func privateDir(sys System) (*safedir.Workdir, error) {
	return newPrivateDir(sys, safedir.WorkdirParams{})
}

// memoryDir is a private folder in memory, where there is one.
func memoryDir(sys System) (*safedir.Workdir, error) {
	return newPrivateDir(sys, safedir.WorkdirParams{InMemory: true})
}

func newPrivateDir(sys System, p safedir.WorkdirParams) (*safedir.Workdir, error) {
	p.Getenv, p.Keeper = sys.Getenv, helper("keep")
	dir, err := safedir.NewWorkdir(p)
	if err == nil {
		for _, path := range dir.Swept {
			fmt.Fprintf(sys.Stderr, "removed what a killed run had left behind: %s\n", path)
		}
	}
	return dir, withHint(err, "set XDG_RUNTIME_DIR to a folder of yours in folders of yours or root's; as root, use sudo -H or su -")
}
