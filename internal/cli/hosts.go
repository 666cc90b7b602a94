package cli

import (
	"context"
	"io"

	"github.com/spf13/cobra"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

type hostsFlags struct {
	foundFlags
	selection   fleetHosts
	connection  connectionFlags
	form        hostlist.Form
	fold, quiet bool
	long        bool
	groups      int
}

func newHostsCommand(sys System) *cobra.Command {
	f := hostsFlags{}
	cmd := page("hosts", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.run(cmd.Context(), sys, args)
		},
	})
	flags := cmd.Flags()
	f.selection.register(flags)
	flags.StringVarP(&f.connection.Config, "config", "F", "", "ssh_config for the names of known hosts, instead of your own")
	flags.Lookup("exclude-hosts").Value = &stepFlag{&f.selection.Steps, '!'} // in turn with the others
	flags.VarP(&stepFlag{&f.selection.Steps, '&'}, "intersection", "I", "set of hosts; keep only hosts that are in it too; repeatable")
	flags.VarP(&stepFlag{&f.selection.Steps, '^'}, "xor", "X", "set of hosts; keep hosts that are in exactly one of the two; repeatable")
	flags.BoolVar(&f.fold, "fold", false, "print one short set (the default)")
	flags.BoolVarP(&f.form.Expand, "names", "e", false, "print every name, in the order of --fold")
	flags.BoolVarP(&f.form.Count, "number", "n", false, "print the number of hosts")
	flags.CountVarP(&f.groups, "list-groups", "L", "print the names of groups: those with one of the given hosts, or all if none is given; -LL with their hosts")
	flags.BoolVar(&f.long, "long", false, "a table of user, address, port and jump hosts, by ssh_config and inventories")
	flags.StringVarP(&f.form.Separator, "separator", "S", " ", `text between the names of -e, such as '\n' (default a blank)`)
	flags.Var(&f.form.Autostep, "autostep", "fold N or more numbers at equal distances as a-b/step, N% of the hosts, or auto; 0 = never")
	flags.BoolVarP(&f.quiet, "test", "t", false, "print nothing; exit status 1 if there is no host")
	f.foundFlags.register(flags)
	completeSets(cmd, sys, &f.connection)
	return cmd
}

// stepFlag gathers operations in the order of the command line.
type stepFlag struct {
	steps *[]hostset.Step
	op    byte
}

func (f *stepFlag) String() string { return "" }
func (f *stepFlag) Type() string   { return "stringArray" }
func (f *stepFlag) Set(set string) error {
	*f.steps = append(*f.steps, hostset.Step{Op: f.op, Sets: []string{set}, Flag: map[byte]string{'!': "-x", '&': "-I", '^': "-X"}[f.op]})
	return nil
}

func (f *hostsFlags) check() error {
	forms := 0
	for _, given := range []bool{f.fold, f.form.Expand, f.form.Count, f.long, f.quiet, f.JSON, f.groups > 0} {
		if given {
			forms++
		}
	}
	switch {
	case forms > 1:
		return usageError("give one of --fold, -e, -n, -L, -t, --long and --json", "more than one form is asked for")
	case f.Out != "" && (f.quiet || f.long || f.groups > 0):
		return usageError("leave it out", "--out with -L, -t or --long")
	}
	return f.Check()
}

func (f *hostsFlags) run(ctx context.Context, sys System, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	config, err := route.New(ctx, f.connection.params(sys))
	if err != nil {
		return err
	}
	store := history.New(history.Dir(sys.Getenv))
	sel := &f.selection
	sel.Sets = append(sel.Sets, args...)
	named := !sel.None()
	if f.groups > 0 && !named {
		return f.listGroups(ctx, sys, store, config, nil)
	}
	if !named && !terminal.IsInput(sys.Stdin) {
		sel.Sets = []string{hostlist.Stdin}
	}
	sel.EmptyOK, sel.AsNamed = true, !f.long && !f.JSON && f.Out == ""
	hosts, err := sel.hosts(ctx, sys, store, config)
	switch {
	case err != nil:
		return err
	case f.quiet && len(hosts) == 0:
		return fault.Exit(ExitFailed)
	case f.quiet:
		return nil
	case f.groups > 0:
		return f.listGroups(ctx, sys, store, config, host.Names(hosts))
	}
	if f.long {
		return hostlist.Reached(ctx, sys.Stdout, terminal.Width(sys.Stdout, sys.Getenv), hosts, config)
	}
	text := func(w io.Writer) error { return f.form.Write(w, hosts) }
	return f.show(sys, text, func(w io.Writer) error { return hostlist.WriteJSON(w, hosts, f.form.Autostep) })
}

// listGroups lists the groups, or those that have one of the names.
func (f *hostsFlags) listGroups(ctx context.Context, sys System, store *history.Store, config *route.Router, names []string) error {
	s, err := f.selection.Open(ctx, surroundings(sys, store, config))
	if err != nil {
		return err
	}
	return hostlist.Groups{Sources: s, Of: names, Members: f.groups > 1, Autostep: f.form.Autostep}.Write(sys.Stdout, sys.Stderr)
}
