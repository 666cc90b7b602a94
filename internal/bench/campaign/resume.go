//go:build linux

package campaign

import (
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record/store"
)

// resumable are the commands that go on with a file.
var resumable = []string{"bench", "transfer", "programs", "login"}

// Reopen opens the result that a command is to go on with, nil if there is none: a file, or the
// newest one of a host, as label names it. A host that it knows need not be named again.
func Reopen(results store.Store, resumed, command string, label func(host string) (string, error), args *[]string) (*store.File, error) {
	if resumed == "" {
		return nil, nil
	}
	path, err := results.Find(resumed, label, store.By(command))
	if err != nil {
		return nil, fault.Usage("measure it first: sshpace "+command+" "+shell.Word(resumed), "%s", err)
	}
	file, err := store.Resume(path)
	if err != nil {
		return nil, err
	}
	c := file.Old.Campaign
	if target := c.Target; len(*args) == 0 && target != testbed.Loopback {
		*args = []string{target}
	}
	switch by := c.Command; {
	case c.Imported != "":
		err = fault.Usage("start a new result", "%s was imported from a log of %s", path, c.Imported)
	case !slices.Contains(resumable, by):
		err = fault.Usage("start a new result", "%s does not say which command measured it", path)
	case by != command:
		err = fault.Usage("sshpace "+by+" --resume "+shell.Word(path), "%s is a result of %s", path, by)
	case (c.Target == testbed.Loopback) == (len(*args) > 0):
		err = fault.Usage("measure the same target", "%s was measured on %q", path, c.Target)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
