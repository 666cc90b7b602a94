package cli

import (
	"sshpace/internal/sys/workdir"
)

// privateDir is a folder of this run, removed even if sshpace is killed.
func privateDir(sys System) (*workdir.Dir, error) { return newPrivateDir(sys, false) }

// memoryDir is a private folder in memory, where there is one.
func memoryDir(sys System) (*workdir.Dir, error) { return newPrivateDir(sys, true) }

func newPrivateDir(sys System, inMemory bool) (*workdir.Dir, error) {
	dir, err := workdir.New(workdir.Params{Getenv: sys.Getenv, Keeper: helper("keep"), InMemory: inMemory})
	return dir, withHint(err, "set XDG_RUNTIME_DIR to a folder of yours in folders of yours or root's; as root, use sudo -H or su -")
}
