package cli

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout/expand"
	"sshpace/internal/fanout/preview"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

// expandFlags say which tokens stand for what.
type expandFlags struct {
	on     bool
	given  expand.Given
	script []byte // nil: none
	values *expand.Values
}

func (f *expandFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.on, "expand", false, "replace %h (host name of ssh_config), %n (name as given), %u, %p, %i (place in the list, from 0), %{variable} and %% for each host")
	flags.StringArrayVar(&f.given.Vars, "var", nil, "with --expand: a variable of all hosts; repeatable")
	flags.StringArrayVar(&f.given.Files, "vars", nil, "with --expand: CSV of variables: a line for each host, the host first; the first line names the columns; repeatable")
}

func (f *expandFlags) check() error {
	if !f.on && len(f.given.Vars)+len(f.given.Files) > 0 {
		return usageError("add --expand, which replaces %{name} by the variable", "--var and --vars are for --expand")
	}
	return nil
}

// expand collects the values of all hosts, and makes the command of each from them.
func (f *runFlags) expand(ctx context.Context, t *task, args []string) (err error) {
	if f.perHost {
		t.own = expand.ByName
	}
	if !f.expansion.on {
		return nil
	}
	known := expand.Known{Target: func(h host.Host) (name, user string, port int, err error) { return target(ctx, t.reach.Router, h) }}
	if known.Variables, err = f.expansion.given.Over(f.selection.Variables); err != nil {
		return err
	}
	texts := append([]string{f.view.Outdir}, args...)
	if f.expansion.values, err = expand.Of(t.hosts, texts, f.expansion.script, known); err != nil {
		return err
	}
	f.view.Dirs = func(h host.Host) string { return f.expansion.values.Path(f.view.Outdir, h) }
	if f.dialogue != nil {
		return nil
	}
	if f.script == "" {
		err = f.expansion.values.Check(t.hosts, t.command.Line)
	}
	t.own = f.expansion.values.Command(args)
	if f.tty && slices.ContainsFunc(t.hosts, func(h host.Host) bool { return t.own(t.command, h).Input != nil }) {
		return cmp.Or(err, usageError("leave --tty out", "a value has special characters, and such a command needs the standard input"))
	}
	return err
}

// preview shows what would run where.
func (f *runFlags) preview(ctx context.Context, sys System, t *task) error {
	p := preview.Plan{Hosts: t.hosts, Batches: f.pace.Sizes(len(t.hosts)), Command: t.command.Text, Account: f.secrets.User, Reach: t.reach}
	switch {
	case f.perHost:
		p.Own = func(h host.Host) string { return expand.Name(p.Command, h.Name) }
	case f.expansion.on:
		p.Own = func(h host.Host) string { return f.expansion.values.Shown(p.Command, h) }
	}
	if f.view.JSON {
		return p.WriteJSON(ctx, sys.Stdout)
	}
	return p.Write(ctx, sys.Stdout, terminal.Width(sys.Stdout, sys.Getenv))
}

// text replaces the tokens in a name of a file.
func (f *expandFlags) text(text string, h host.Host) string { return f.values.Text(text, h) }

// target returns where ssh_config leads.
func target(ctx context.Context, config *route.Router, h host.Host) (name, user string, port int, err error) {
	found, err := config.Route(ctx, h)
	if err != nil {
		return "", "", 0, err
	}
	return found.Host.HostName(), found.Host.User(), found.Host.Port(), nil
}
