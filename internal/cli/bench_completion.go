//go:build linux

package cli

import (
	"context"

	"github.com/spf13/cobra"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/wire"
)

// completeBench teaches shells the values of bench's flags and its hosts.
func completeBench(cmd *cobra.Command, sys System, f *benchFlags) {
	fixed := func(flag string, values ...string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
	for _, c := range choices {
		fixed(c.flag, c.values...)
	}
	var policies []string
	for _, policy := range alg.Policies() {
		policies = append(policies, policy.Name)
	}
	fixed("policy", policies...)
	for flag, kind := range map[string]alg.Kind{"cipher": alg.Cipher, "mac": alg.MAC, "kex": alg.Kex} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return clientOffer(cmd.Context(), f.ssh).List(kind), cobra.ShellCompDirectiveNoFileComp
		})
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		config, err := loadSSHConfig(cmd.Context(), sys, f.connection)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return config.HostNames(), cobra.ShellCompDirectiveNoFileComp
	}
}

// clientOffer is what the client can do that bench would choose.
func clientOffer(ctx context.Context, path string) alg.Offer {
	ssh, err := openssh.FindClient(ctx, path)
	if err != nil {
		return wire.Offer()
	}
	offer, err := ssh.Query(ctx)
	if err != nil {
		return wire.Offer()
	}
	return offer
}
