package hostlist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/safedir"
)

// Sources answer for @group.
type Sources struct {
	Groups           []string // files; none: the user's own
	Command          string
	Inventories      []string
	InventoryCommand string
}

// Opened are the sources, read.
type Opened struct {
	Groups    hostset.Sources
	inventory *Inventory
	named     []string // sources whose groups contain hosts that * matches
	history   *history.Store
	config    *route.Router
	hashed    int // names in known_hosts that cannot be listed
}

// Open reads the files of the flags. Plain @group is answered by groups, inventories and the
// command together, and by the user's own files if they do not know it; @last:SET and the like by
// the history.
func (f *Sources) Open(ctx context.Context, from Surroundings) (*Opened, error) {
	s := &Opened{Groups: hostset.Sources{"*": from.History}, inventory: New(), history: from.History, config: from.Config}
	s.Groups["ssh_config"] = hostset.Listing(func() ([]string, error) { return s.configured(), nil })
	s.Groups["known_hosts"] = hostset.Listing(func() ([]string, error) { return s.knownHosts(ctx) })
	if err := s.groupFiles(f.Groups, s.Groups.Also); err != nil {
		return nil, err
	}
	for _, name := range f.Inventories {
		if err := s.inventory.Add(ctx, name); err != nil {
			return nil, sourceError(err, "--inventory")
		}
	}
	if f.InventoryCommand != "" {
		if err := s.inventory.AddCommand(ctx, f.InventoryCommand); err != nil {
			return nil, sourceError(err, "--inventory-command")
		}
	}
	if len(s.inventory.files) > 0 {
		s.Groups.Also("", s.inventory)
	}
	if f.Command != "" {
		s.Groups.Also("", NewCommand(ctx, f.Command))
	}
	if len(f.Groups) == 0 { // they add no hosts to a group that is named for this command
		own := ownGroups(from.Getenv)
		for _, name := range own {
			if err := checkOwner(name, os.Geteuid()); err != nil {
				return nil, err
			}
		}
		if err := s.groupFiles(own, s.Groups.Else); err != nil {
			return nil, err
		}
	}
	if s.Groups[""] != nil {
		s.named = append(s.named, "")
	}
	return s, nil
}

// groupFiles adds files of groups, which answer as add sets.
func (s *Opened) groupFiles(names []string, add func(source string, g hostset.Groups)) error {
	files := NewGroupFiles(s.inventory.warn)
	for _, name := range names {
		if err := files.Add(name); err != nil {
			return sourceError(err, "--groups")
		}
	}
	s.named = append(s.named, files.Into(s.Groups, add)...)
	return nil
}

// ownGroups returns the user's own files that exist.
func ownGroups(getenv func(string) string) []string {
	config := safedir.Config(getenv)
	if config == "" {
		return nil
	}
	own := filepath.Join(config, "groups")
	return slices.DeleteFunc([]string{own, own + ".d"}, func(name string) bool {
		_, err := os.Stat(name)
		return errors.Is(err, fs.ErrNotExist)
	})
}

// checkOwner refuses groups of somebody else that nobody has named, as ssh refuses a configuration:
// a user could lead root's commands to other hosts.
func checkOwner(name string, user int) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != 0 && owner != user {
		return fault.Usage("name it with --groups if you trust its owner", "%s belongs to another user (%d)", name, owner)
	}
	return nil
}

func sourceError(err error, flag string) error {
	hint := fault.HintOf(err)
	if hint == "" {
		hint = "correct that line of the file for " + flag
	}
	if _, unread := errors.AsType[*fs.PathError](err); unread {
		hint = "give a readable file to " + flag
	}
	return &fault.Error{Err: err, Hint: hint, Code: fault.Misuse}
}

// Options returns the options for package hostset.
func (s *Opened) Options() hostset.Options {
	return hostset.Options{Groups: s.Groups, Complete: s.complete, Known: s.known}
}

// complete fills in the data of inventories, and that of earlier runs where they have none.
func (s *Opened) complete(h *host.Host) error {
	err := s.inventory.Complete(h)
	if err == nil {
		s.history.Complete(h)
	}
	return err
}

// known returns the names that * and ? select from: those of ssh_config, of inventories, and of all
// groups of files and --groups-command.
func (s *Opened) known() ([]string, error) {
	names := slices.Concat(s.configured(), s.inventory.Hosts())
	for _, source := range s.named {
		members, err := hostset.Members(s.Groups, source)
		if err != nil {
			return nil, err
		}
		names = append(names, members...)
	}
	return names, nil
}

// configured returns the names on the Host lines of ssh_config.
func (s *Opened) configured() []string {
	return s.hostsAmong(s.config.HostNames(), "ssh_config", func(name string) bool { return host.CheckName(name) == nil })
}

// hostsAmong drops the names that cannot be hosts, such as a,b or [x]: as sets they would be
// others.
func (s *Opened) hostsAmong(names []string, source string, canBe func(name string) bool) (hosts []string) {
	var odd []string
	for _, name := range names {
		if canBe(name) {
			hosts = append(hosts, name)
		} else {
			odd = append(odd, strconv.Quote(name))
		}
	}
	if len(odd) > 0 {
		s.inventory.warn("%s: names that cannot be hosts are left out: %s", source, hostset.Some(odd))
	}
	return hosts
}

func (s *Opened) knownHosts(ctx context.Context) (names []string, err error) {
	files, err := s.config.KnownHostsFiles(ctx)
	if err == nil {
		x := index.Open(files...)
		names, s.hashed = x.Hosts()
		names = s.hostsAmong(names, "known_hosts", func(name string) bool {
			h, err := host.Parse(name) // with its port
			return err == nil && h.User+h.Address == ""
		})
		err = errors.Join(x.Problems()...)
	}
	return names, err
}

// Warn reports the lines of the sources that have no effect, or cannot be read.
func (s *Opened) Warn(w io.Writer) {
	for _, text := range s.inventory.Warnings() {
		fmt.Fprintf(w, "sshpace: warning: %s\n", termsafe.OneLine(text))
	}
	if s.hashed > 0 {
		fmt.Fprintf(w, "sshpace: warning: %d hashed names of known_hosts cannot be listed\n", s.hashed)
	}
}

// Known returns the names of hosts in ssh_config and known_hosts, and those of groups if they are
// wanted. Errors give no names: a completion has nobody to report to.
func Known(ctx context.Context, s Surroundings, groups bool) (names []string) {
	s.Stderr = io.Discard
	sources, err := new(Sources).Open(ctx, s)
	if err != nil {
		return nil
	}
	if plain := sources.Groups[""]; groups && plain != nil {
		all, _ := plain.Names("")
		for _, group := range all {
			names = append(names, "@"+group)
		}
	}
	for _, source := range []string{"ssh_config", "known_hosts"} {
		hosts, _ := sources.Groups[source].Group("", "all")
		names = append(names, hosts...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
