package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/knownhosts/tidy"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

// splitFlags are the flags of `sshpace known-hosts split`.
type splitFlags struct {
	files       knownHostsFiles
	hosts       hostFlags
	dir         string
	noResolve   bool
	force, keep bool
	json        bool
}

func newKnownHostsSplitCommand(sys System) *cobra.Command {
	var f splitFlags
	cmd := page("known-hosts-split", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			f.files = append(f.files, args...)
			return runSplit(cmd.Context(), sys, f)
		},
	})
	flags := cmd.Flags()
	f.files.register(flags)
	f.hosts.register(flags)
	flags.StringVar(&f.dir, "dir", "", "directory for the files (default ~/.ssh/known_hosts.d)")
	flags.BoolVar(&f.noResolve, "no-resolve", false, "do not look up the addresses of the hosts")
	flags.BoolVar(&f.force, "force", false, "replace host files that exist and differ")
	flags.BoolVar(&f.keep, "keep-unmatched", false, "keep the lines that belong to no named host in DIR/.patterns, where they still cost time")
	flags.BoolVar(&f.json, "json", false, "print the changes as JSON")
	return cmd
}

func runSplit(ctx context.Context, sys System, f splitFlags) error {
	ctx, _, stop := interrupts(ctx, sys)
	defer stop()
	x, err := f.files.open(sys, false)
	if err != nil {
		return err
	}
	hosts, err := f.hosts.lookedUp(ctx, sys)
	if err != nil {
		return interrupted(ctx, err)
	}
	if f.dir == "" {
		if f.dir, err = sshPath(sys, "known_hosts.d"); err != nil {
			return err
		}
	}
	config, err := tidy.SplitConfig(f.dir, route.Aliases(hosts))
	if err != nil {
		return &Error{Err: err, Hint: "use another --dir", Code: ExitUsage}
	}
	options := tidy.SplitOptions{Hosts: route.Hosts(hosts), Force: f.force, KeepUnmatched: f.keep,
		Progress: terminal.NewProgress(sys.Stderr, "host files").Report, Looking: terminal.NewProgress(sys.Stderr, "addresses looked up").Report}
	if !f.noResolve {
		options.Resolve = tidy.Addresses
	}
	result, err := tidy.Split(ctx, x, f.dir, options)
	if err != nil && hintOf(err) == "" {
		err = withHint(err, "nothing was changed in "+strings.Join(x.Files(), ", "))
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	return findings.Split(sys.Stdout, sys.Stderr, result, config, f.json)
}
