package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet/history"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/knownhosts/tidy"
	"sshpace/internal/ssh/route"
)

func newKnownHostsLookupCommand(sys System) *cobra.Command {
	var files knownHostsFiles
	var connection connectionFlags // -p
	var asJSON bool
	cmd := page("known-hosts-lookup", &cobra.Command{
		Args: takes(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			files = append(files, args[1:]...)
			ctx, _, stop := interrupts(cmd.Context(), sys)
			defer stop()
			x, err := files.open(sys, false)
			if err != nil {
				return err
			}
			name, err := route.KnownName(ctx, connection.params(sys), args[0])
			if err != nil {
				return interrupted(ctx, err)
			}
			entries := x.Exactly(name)
			if err := findings.Entries(sys.Stdout, name, entries, asJSON); err != nil {
				return err
			}
			return findings.LookedUp(sys.Stderr, args[0], name, x.Files(), len(entries))
		},
	})
	files.register(cmd.Flags())
	cmd.Flags().VarP(connection.PortFlag(), "port", "p", "port of the server")
	cmd.Flags().StringVarP(&connection.Config, "config", "F", "", "ssh_config with HostName, Port and HostKeyAlias of the host; none = no file")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lines as JSON")
	return cmd
}

func newKnownHostsLintCommand(sys System) *cobra.Command {
	var files knownHostsFiles
	var named hostFlags
	var ignore []string
	var asJSON, all bool
	cmd := page("known-hosts-lint", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			files = append(files, args...)
			ctx, _, stop := interrupts(cmd.Context(), sys)
			defer stop()
			x, err := files.open(sys, false)
			if err != nil {
				return err
			}
			hosts, err := named.lookedUp(ctx, sys)
			if err != nil {
				return interrupted(ctx, err)
			}
			return runLint(ctx, sys, x, hosts, ignore, asJSON, all)
		},
	})
	files.register(cmd.Flags())
	named.register(cmd.Flags())
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "kind of finding to leave out, such as short-key; repeatable")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print all findings as JSON")
	cmd.Flags().BoolVar(&all, "all", false, "print all findings, even if there are too many for one screen")
	return cmd
}

func runLint(ctx context.Context, sys System, x *index.Index, hosts []route.LookedUp, ignore []string, asJSON, all bool) error {
	for _, kind := range ignore {
		if !slices.Contains(tidy.Kinds(), tidy.Kind(kind)) {
			return usageError(fmt.Sprintf("kinds are: %v", tidy.Kinds()), "unknown kind of finding %q", kind)
		}
	}
	found := slices.DeleteFunc(tidy.Lint(ctx, x, route.KnownNames(hosts)), func(f tidy.Finding) bool {
		return slices.Contains(ignore, string(f.Kind))
	})
	if err := ctx.Err(); err != nil { // hosts with hashed names would be missing
		return interrupted(ctx, err)
	}
	if err := findings.Findings(sys.Stdout, found, asJSON, all); err != nil {
		return err
	}
	if len(found) == 0 {
		lines := 0
		for _, t := range x.Tables() {
			lines += len(t.Lines())
		}
		_, err := fmt.Fprintf(sys.Stderr, "no problems in %s (%s)\n", oneLine(strings.Join(x.Files(), ", ")), unit.Count(lines, "line"))
		return err
	}
	fmt.Fprintf(sys.Stderr, "sshpace: %s\n", unit.Count(len(found), "finding"))
	return fault.Exit(ExitFound)
}

// hostFlags select hosts for a command about known_hosts files: sets, as those of run.
type hostFlags struct {
	fleetHosts
	fromConfig bool
	connection connectionFlags // -F
}

func (f *hostFlags) register(flags *pflag.FlagSet) {
	f.fleetHosts.register(flags)
	flags.BoolVar(&f.fromConfig, "from-config", false, "all names on the Host lines of ssh_config")
	flags.StringVarP(&f.connection.Config, "config", "F", "", "ssh_config with the HostName, Port and HostKeyAlias of the hosts; none = no file")
}

// lookedUp returns the named hosts as ssh will look them up; nil if none were named.
func (f *hostFlags) lookedUp(ctx context.Context, sys System) ([]route.LookedUp, error) {
	router, err := route.New(ctx, f.connection.params(sys))
	if err != nil {
		return nil, err
	}
	config, err := router.Configuration(ctx)
	if err != nil {
		return nil, err
	}
	if f.fromConfig && len(config.HostNames()) > 0 {
		f.Sets = append(f.Sets, "@ssh_config:all")
	}
	if f.None() {
		return nil, nil
	}
	named, err := f.hosts(ctx, sys, history.New(history.Dir(sys.Getenv)), router)
	if err != nil {
		return nil, err
	}
	return config.LookUp(ctx, named)
}
