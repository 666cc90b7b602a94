package cli

import (
	"context"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/fanout/hostlist"
	"sshpace/internal/fleet/history"
	"sshpace/internal/record/store"
	"sshpace/internal/ssh/route"
)

// completions lists the shells with a completion script.
var completions = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"zsh":        (*cobra.Command).GenZshCompletion,
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
}

func newCompletionCommand(sys System) *cobra.Command {
	shells := slices.Sorted(maps.Keys(completions))
	return page("completion", &cobra.Command{
		Args:      takes(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			write := completions[args[0]]
			if write == nil {
				return usageError(fault.Near("sshpace completion ", args[0], shells, "the shells are "+strings.Join(shells, ", ")), "no completion for %q", args[0])
			}
			return write(cmd.Root(), sys.Stdout)
		},
	})
}

// completer returns the words that may follow, for a shell.
type completer = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective)

// words completes to the words of list, and to no files.
func words(list func(context.Context) []string) completer {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return list(cmd.Context()), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeHosts teaches shells the one host that a command takes.
func completeHosts(cmd *cobra.Command, sys System, c *connectionFlags) {
	hosts := words(func(ctx context.Context) []string { return hostNames(ctx, sys, *c, false) })
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return hosts(cmd, args, begun)
	}
}

// completeSets teaches shells the sets of hosts of --hosts and --exclude-hosts.
func completeSets(cmd *cobra.Command, sys System, c *connectionFlags) {
	sets := words(func(ctx context.Context) []string { return hostNames(ctx, sys, *c, true) })
	for _, flag := range []string{"hosts", "exclude-hosts"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, sets)
	}
}

// completeResults teaches shells the results, and the hosts that have some.
func completeResults(cmd *cobra.Command, sys System) { cmd.ValidArgsFunction = results(sys) }

// results completes to results, and to files elsewhere.
func results(sys System) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return store.Of(sys.Getenv).Known(), cobra.ShellCompDirectiveDefault
	}
}

// completePolicies teaches shells the names of policies.
func completePolicies(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("policy", words(func(context.Context) (names []string) {
		for _, policy := range alg.Policies() {
			names = append(names, policy.Name)
		}
		return names
	}))
}

// hostNames returns the names of hosts, and of groups if they are wanted; none where ssh_config
// cannot be read.
func hostNames(ctx context.Context, sys System, c connectionFlags, groups bool) []string {
	sys.Stderr = io.Discard
	config, err := route.New(ctx, c.params(sys))
	if err != nil {
		return nil
	}
	return hostlist.Known(ctx, surroundings(sys, history.New(history.Dir(sys.Getenv)), config), groups)
}
