package cli

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fanout/sudo"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
	"sshpace/internal/fleet/watch"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

// viewFlags control how output is shown.
type viewFlags struct {
	output.View
	drain context.Context // with --watch: ends with an interrupt
}

func (f *viewFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Gather, "gather", "b", false, "show identical output once, at the end, under the set of its hosts")
	flags.StringVar(&f.Diff, "diff", "", "like -b, but show other groups as diffs against the largest, or against the output of this host")
	flags.Lookup("diff").NoOptDefVal = output.Majority
	flags.StringVar(&f.Group, "group-by", "", "output: like -b; exit: like -b, but separate groups by exit status")
	flags.BoolVar(&f.Mask, "mask-names", false, "like -b, but outputs that differ only by the host's own name are one group, which shows it as <host>")
	flags.BoolVar(&f.Table, "rows", false, "one line a host, at the end: how it ended, time, lines sent, the last of them")
	flags.BoolVar(&f.Failed, "only-failed", false, "show only hosts that failed or were unreachable; the summary counts all")
	flags.StringVar(&f.Sort, "sort", "", "show hosts one after the other, at the end, by host (as named), exit or time; the worst last")
	flags.BoolVar(&f.Watch, "watch", false, "show the run on the whole terminal, a line a host, with the output of each; ? there lists the keys")
	flags.BoolVar(&f.JSON, "json", false, "one JSON object a line: run, output, result, summary")
	flags.BoolVar(&f.Times, "timestamps", false, "put the local time before each line; with --json, into each output")
	flags.StringVar(&f.Outdir, "dir", "", "also write each host's output to HOST.out and HOST.err in this directory; --expand replaces tokens in it")
	flags.BoolVar(&f.Raw, "raw", false, "do not clean control characters out of the hosts' output")
	flags.StringVar(&f.Color, "color", "auto", "auto, always or never")
}

// usable refuses a view for which there is no terminal.
func (f *viewFlags) usable(sys System) error {
	if f.Watch {
		return watch.Usable(sys.views())
	}
	return nil
}

// sink shows a run on hosts.
func (f *viewFlags) sink(to output.Streams, hosts []host.Host) (fleet.Sink, error) {
	sink, err := f.Sink(to, hosts)
	if err != nil || !f.Watch {
		return sink, err
	}
	return watch.Over(sink, watch.Options{Screen: to.Screen, Color: f.Colored(to, to.Out), Stop: f.drain})
}

// fleetHosts are the flags that select hosts.
type fleetHosts struct{ hostlist.Selection }

func (f *fleetHosts) register(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.Sets, "hosts", "w", nil, "set of hosts, such as web[1-9],@db!db3; - reads them from standard input; repeatable")
	flags.StringArrayVarP(&f.Exclude, "exclude-hosts", "x", nil, "set of hosts to leave out; repeatable")
	flags.StringArrayVar(&f.Lists, "hosts-file", nil, "file of hosts, one a line as user@host:port or host:port user, %label begins a section; repeatable")
	flags.StringArrayVar(&f.Labels, "label", nil, "only these sections of the hosts files; repeatable")
	flags.StringArrayVar(&f.Groups, "groups", nil, "groups for @group as ClusterShell keeps them: a file of lines name: set, YAML, or a directory of "+
		"both; repeatable (default ~/.config/sshpace/groups and groups.d)")
	flags.StringVar(&f.Command, "groups-command", "", "command that writes the sets of the group $GROUP, or all names of groups if that is empty")
	flags.StringArrayVar(&f.Inventories, "inventory", nil, "Ansible inventory, INI, YAML, JSON or an inventory script, which is run: groups for @group, and how hosts are reached; repeatable")
	flags.StringVar(&f.InventoryCommand, "inventory-command", "", "command that writes an inventory, such as 'ansible-inventory --list'")
}

// hosts resolves the selection.
func (f *fleetHosts) hosts(ctx context.Context, sys System, store *history.Store, config *route.Router) ([]host.Host, error) {
	return f.Hosts(ctx, surroundings(sys, store, config))
}

func surroundings(sys System, store *history.Store, config *route.Router) hostlist.Surroundings {
	return hostlist.Surroundings{Stdin: sys.Stdin, Stderr: sys.Stderr, Getenv: sys.Getenv, History: store, Config: config}
}

// paceFlags control how a run goes from few hosts to many.
type paceFlags struct {
	fanout.Pace
	confirmAbove int
	yes          bool
}

func (f *paceFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.Canary, "canary", 0, "run on this many hosts first, and on the others only if none of them fails")
	flags.BoolVar(&f.ThenConfirm, "then-confirm", false, "with --canary: ask before the other hosts, even if none of the first failed")
	flags.Var(&f.Batches, "batch", "hosts in a batch, such as 10 or 10%; with commas for batches that grow: 1,10,25%")
	flags.Var((*seconds)(&f.Pause), "pause", "time between two batches (default none)")
	flags.Var(&f.MaxFail, "max-fail", "start no further hosts once more than this number have failed or are unreachable; running commands continue")
	flags.BoolVar(&f.FailFast, "fail-fast", false, "once a host has failed, or more than --max-fail allows, start no other and end the running commands")
	flags.Var((*seconds)(&f.Splay), "splay", "delay the start of each host, or of each in a batch, at random by up to this time")
	flags.IntVar(&f.confirmAbove, "confirm-above", 0, "ask before a run on more hosts than this (default $SSHPACE_CONFIRM_ABOVE, otherwise never)")
	flags.BoolVarP(&f.yes, "yes", "y", false, "answer yes to --confirm-above and --then-confirm")
}

// question asks the user, or answers for them; nil where nobody is asked.
func (f *paceFlags) question(ctx context.Context, screen *terminal.Screen) func(string) (bool, error) {
	if !f.ThenConfirm || f.yes {
		return nil
	}
	return func(text string) (yes bool, err error) {
		screen.Aside(func() { yes, err = terminal.Confirm(ctx, text) })
		return yes, err
	}
}

// limit is the number of hosts above which the user is asked; 0 for none.
func (f *paceFlags) limit(getenv func(string) string) int {
	limit := f.confirmAbove
	if limit == 0 {
		limit, _ = strconv.Atoi(getenv("SSHPACE_CONFIRM_ABOVE"))
	}
	if f.yes {
		return 0
	}
	return limit
}

// secretFlags select the account that runs commands, and the source of the password.
type secretFlags struct{ sudo.Secrets }

func (f *secretFlags) register(flags *pflag.FlagSet) {
	f.registerLogin(flags)
	flags.StringVar(&f.User, "sudo", "", "run the command as this user by sudo; its password is asked for once, when the first host wants one, or comes from --password-command")
	flags.Lookup("sudo").NoOptDefVal = "root"
}

// registerLogin defines the flags for commands without sudo.
func (f *secretFlags) registerLogin(flags *pflag.FlagSet) {
	flags.BoolVar(&f.Ask, "ask-pass", false, "ask once, without echo, for the password of hosts that take no key, or for the passphrase of a key")
	flags.StringVar(&f.Command, "password-command", "", "read the password from the first line that this command prints, by sh")
}
