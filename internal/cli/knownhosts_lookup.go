package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/knownhosts/tidy"
	"sshpace/internal/ssh/route"
)

func newKnownHostsLookupCommand(sys System) *cobra.Command {
	var files knownHostsFiles
	var port int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lookup NAME",
		Short: "Print the lines for a host, as ssh-keygen -F",
		Long: `Prints the lines that match a name, hashed ones included, as ssh-keygen -F does, and exits
with 0 if there are any and with 1 if not. A host on another port than 22 is written
[NAME]:PORT, or with -p. Lines whose key cannot be read are left out, since ssh passes
over them; ssh-keygen prints them, lint tells of them.`,
		Example: `  sshpace known-hosts lookup db1.example.com
  sshpace known-hosts lookup -p 2222 db1.example.com
  sshpace known-hosts lookup '[db1.example.com]:2222' --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if port < 0 || port > 65535 {
				return usageError("a port is a number from 1 to 65535", "port %d", port)
			}
			x, err := files.open(sys)
			if err != nil {
				return err
			}
			name := args[0]
			if port != 0 {
				name = knownhosts.HostPort(name, port)
			}
			entries := x.Exactly(name)
			if err := findings.Entries(sys.Stdout, name, entries, asJSON); err != nil {
				return err
			}
			if len(entries) == 0 {
				return exitWith(ExitFailed)
			}
			return nil
		},
	}
	files.register(cmd.Flags())
	cmd.Flags().IntVarP(&port, "port", "p", 0, "port of the server")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the lines as JSON")
	return cmd
}

func newKnownHostsLintCommand(sys System) *cobra.Command {
	var files knownHostsFiles
	var named hostFlags
	var ignore []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Find unreadable, weak, contradictory and useless lines",
		Long: `Reports, by file and line:
  unreadable      ssh passes over the line without a word
  weak-key        a DSA key, or an RSA key below 2048 bits
  short-key       an RSA key below 3072 bits
  revoked-key     a @revoked line forbids the key
  conflict        two keys of one type for one name; ssh accepts either
  duplicate       an earlier line says the same
  shadowed        a pattern with the same key covers the line
  mixed-hashing   some names are hashed, others not

Exits with 3 if it found something. What is behind hashed names is compared as far as
the names are given.`,
		Example: `  sshpace known-hosts lint
  sshpace known-hosts lint --ignore short-key --known-hosts /etc/ssh/ssh_known_hosts
  sshpace known-hosts lint --hosts-file servers.list --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, _, stop := interrupts(cmd.Context(), sys)
			defer stop()
			x, err := files.open(sys)
			if err != nil {
				return err
			}
			hosts, err := named.hosts(ctx, sys)
			if err != nil {
				return interrupted(ctx, err)
			}
			return runLint(ctx, sys, x, hosts, ignore, asJSON)
		},
	}
	files.register(cmd.Flags())
	named.register(cmd.Flags())
	cmd.Flags().StringArrayVar(&ignore, "ignore", nil, "kind of finding to leave out, such as short-key; repeatable")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	return cmd
}

func runLint(ctx context.Context, sys System, x *index.Index, hosts []route.LookedUp, ignore []string, asJSON bool) error {
	for _, kind := range ignore {
		if !slices.Contains(tidy.Kinds(), tidy.Kind(kind)) {
			return usageError(fmt.Sprintf("kinds are: %v", tidy.Kinds()), "unknown kind of finding %q", kind)
		}
	}
	found := slices.DeleteFunc(tidy.Lint(ctx, x, knownNames(hosts)), func(f tidy.Finding) bool {
		return slices.Contains(ignore, string(f.Kind))
	})
	if err := ctx.Err(); err != nil { // what is behind hashed names would be missing
		return interrupted(ctx, err)
	}
	if err := findings.Findings(sys.Stdout, found, asJSON); err != nil {
		return err
	}
	if len(found) == 0 {
		return nil
	}
	fmt.Fprintf(sys.Stderr, "sshpace: %s\n", unit.Count(len(found), "finding"))
	return exitWith(ExitFound)
}
