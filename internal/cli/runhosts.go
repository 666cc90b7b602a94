package cli

import (
	"context"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fleet/history"
	"sshpace/internal/ssh/route"
)

// fleetHosts are the flags that select hosts.
type fleetHosts struct{ hostlist.Selection }

func (f *fleetHosts) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Sets, "hosts", "w", nil, "set of hosts, such as web[1-9],@db!db3; - reads them from standard input; repeatable")
	flags.StringArrayVarP(&f.Exclude, "exclude", "x", nil, "set of hosts to leave out; repeatable")
	flags.StringArrayVar(&f.Lists, "hosts-file", nil, "file of hosts, one a line as user@host:port or host:port user, %label begins a section; repeatable")
	flags.StringArrayVar(&f.Labels, "label", nil, "only these sections of the hosts files; repeatable")
	flags.StringArrayVar(&f.Groups, "groups", nil, "groups for @group as ClusterShell keeps them: a file of lines name: set, YAML, or a directory of "+
		"both; repeatable (default ~/.config/sshpace/groups and groups.d)")
	flags.StringVar(&f.Command, "groups-command", "", "command that writes the sets of the group $GROUP, or all names of groups if that is empty")
	flags.StringArrayVar(&f.Inventories, "inventory", nil, "Ansible inventory, INI or YAML: groups for @group, and addresses, ports and users of hosts; repeatable")
}

// hosts resolves the selection.
func (f *fleetHosts) hosts(ctx context.Context, sys System, store *history.Store, config *route.Router) ([]host.Host, error) {
	return f.Hosts(ctx, surroundings(sys, store, config))
}

func surroundings(sys System, store *history.Store, config *route.Router) hostlist.Surroundings {
	return hostlist.Surroundings{Stdin: sys.Stdin, Stderr: sys.Stderr, Getenv: sys.Getenv, History: store, Config: config}
}
