//go:build linux

package campaign

import (
	"fmt"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
)

// resumable lists the commands that can resume a file.
var resumable = []string{"bench", "transfer", "programs", "login"}

// Reopen opens the result that a command resumes, nil if there is none: a file, or the newest one
// of a host, by its label. A host in the result need not be named again.
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
	if target := c.Target; len(*args) == 0 && target != record.Loopback {
		*args = []string{target}
	}
	switch by := c.Command; {
	case c.Imported != "":
		err = fault.Usage("start a new result", "%s was imported from a log of %s", path, c.Imported)
	case !slices.Contains(resumable, by):
		err = fault.Usage("start a new result", "%s does not say which command measured it", path)
	case by != command:
		err = fault.Usage("sshpace "+by+" --resume "+shell.Word(path), "%s is a result of %s", path, by)
	case (c.Target == record.Loopback) == (len(*args) > 0):
		err = fault.Usage("measure the same target", "%s was measured on %q", path, c.Target)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// old returns the resumed result; nil: there is none.
func (o Output) old() *record.File {
	if o.File == nil {
		return nil
	}
	return o.File.Old
}

// startAnew is the remedy for different conditions.
const startAnew = "start a new result and compare the two: sshpace compare"

// fits refuses to mix measurements that must not be averaged: the new one must have the same ends
// and programs as the resumed result.
func (o Output) fits(now *record.Campaign, here *record.Environment) error {
	old := o.old()
	if old == nil {
		return nil
	}
	there := old.Environment
	for _, part := range []struct{ what, was, is, flag, path string }{
		{"target", old.Campaign.Target, now.Target, "", ""}, {"server", string(old.Campaign.Server), string(now.Server), "", ""},
		{"client version", there.Client, here.Client, "--ssh", there.ClientPath},
		{"server version", there.Server, here.Server, "--sshd", there.ServerPath},
		{"CPU", there.CPU, here.CPU, "", ""},
	} {
		if part.was == part.is {
			continue
		}
		hint := startAnew
		if part.path != "" {
			hint = fmt.Sprintf("add %s %s, which it was measured with, or %s", part.flag, shell.Word(part.path), startAnew)
		}
		return fault.Usage(hint, "the file was measured with %s %q, now it is %q", part.what, part.was, part.is)
	}
	differ := func(was, is string) bool { return was != "" && is != "" && was != is } // not every host reports it
	if was, is := there.ServerMachine, here.ServerMachine; differ(was, is) {
		return fault.Usage(startAnew, "the file was measured on the machine %q, now it is %q", was, is)
	}
	if differ(there.AddressCheck, here.AddressCheck) {
		return fault.Usage(startAnew, "the file was measured at another address or port than %s has now", now.Target)
	}
	for _, kind := range alg.Measured {
		if gone := old.Campaign.Offer.Without(now.Shared, kind); len(gone) > 0 {
			return fault.Usage("start a new result", "%s %q of the file is no longer available", kind, gone[0])
		}
	}
	return nil
}
