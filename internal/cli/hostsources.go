package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/inventory"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/safedir"
)

// hostSources are the flags that say who knows what @group means.
type hostSources struct {
	groups      []string
	command     string
	inventories []string
}

func (f *hostSources) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.groups, "groups", nil, "groups for @group as ClusterShell keeps them: a file of lines name: set, YAML, or a folder of\n"+
		"both; repeatable (default ~/.config/sshpace/groups and groups.d)")
	flags.StringVar(&f.command, "groups-command", "", "command that writes the sets of the group $GROUP, or all names of groups if that is empty")
	flags.StringArrayVar(&f.inventories, "inventory", nil, "Ansible inventory, INI or YAML: groups for @group, and addresses, ports and users of hosts; repeatable")
}

// openSources are the sources, read.
type openSources struct {
	groups    hostset.Sources
	inventory *inventory.Inventory
	config    *route.Router
	hashed    int // names in known_hosts that cannot be listed
}

// open reads what the flags name. Plain @group is answered by groups, inventories
// and the command together; @last:SET and the like by the history.
func (f *hostSources) open(ctx context.Context, sys System, store *history.Store, config *route.Router) (*openSources, error) {
	s := &openSources{groups: hostset.Sources{"*": history.Runs{Store: store}}, inventory: inventory.New(), config: config}
	s.groups["ssh_config"] = hostset.Listing(func() ([]string, error) { return config.HostNames(), nil })
	s.groups["known_hosts"] = hostset.Listing(func() ([]string, error) { return s.knownHosts(ctx) })
	files := inventory.NewGroupFiles()
	for _, name := range f.groupFiles(sys) {
		if err := files.Add(name); err != nil && (len(f.groups) > 0 || !errors.Is(err, fs.ErrNotExist)) {
			return nil, sourceError(err, "--groups")
		}
	}
	files.Into(s.groups)
	for _, name := range f.inventories {
		if err := s.inventory.Add(name); err != nil {
			return nil, sourceError(err, "--inventory")
		}
	}
	if len(f.inventories) > 0 {
		s.groups.Also("", s.inventory)
	}
	if f.command != "" {
		s.groups.Also("", inventory.NewCommand(ctx, f.command))
	}
	return s, nil
}

func (f *hostSources) groupFiles(sys System) []string {
	if len(f.groups) > 0 {
		return f.groups
	}
	config := safedir.Config(sys.Getenv)
	if config == "" {
		return nil
	}
	own := filepath.Join(config, "groups")
	return []string{own, own + ".d"}
}

func sourceError(err error, flag string) error {
	hint := hintOf(err)
	if hint == "" {
		hint = "give a readable file to " + flag
	}
	return &Error{Err: err, Hint: hint, Code: ExitUsage}
}

func (s *openSources) options() hostset.Options {
	return hostset.Options{Groups: s.groups, Complete: s.inventory.Complete, Known: func() ([]string, error) {
		return slices.Concat(s.config.HostNames(), s.inventory.Hosts()), nil
	}}
}

func (s *openSources) knownHosts(ctx context.Context) (names []string, err error) {
	files, err := s.config.KnownHostsFiles(ctx)
	if err == nil {
		names, s.hashed, err = knownhosts.Names(files...)
	}
	return names, err
}

// warn tells what the sources say that has no effect, or do not tell.
func (s *openSources) warn(w io.Writer) {
	for _, text := range s.inventory.Warnings() {
		fmt.Fprintf(w, "sshpace: warning: %s\n", oneLine(text))
	}
	if s.hashed > 0 {
		fmt.Fprintf(w, "sshpace: warning: %d hashed names of known_hosts cannot be listed\n", s.hashed)
	}
}
