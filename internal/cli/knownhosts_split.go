package cli

import (
	"context"
	"io"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/termsafe"
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
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSplit(cmd.Context(), sys, f) },
	})
	flags := cmd.Flags()
	f.files.register(flags)
	f.hosts.register(flags)
	flags.StringVar(&f.dir, "dir", "", "directory for the files (default ~/.ssh/known_hosts.d)")
	flags.BoolVar(&f.noResolve, "no-resolve", false, "do not look up the addresses of the hosts")
	flags.BoolVar(&f.force, "force", false, "replace host files that exist and differ")
	flags.BoolVar(&f.keep, "keep-unmatched", false, "keep the lines of no named host in DIR/.patterns; they go on to cost time")
	flags.BoolVar(&f.json, "json", false, "print what was done as JSON")
	return cmd
}

func runSplit(ctx context.Context, sys System, f splitFlags) error {
	ctx, _, stop := interrupts(ctx, sys)
	defer stop()
	x, err := f.files.open(sys)
	if err != nil {
		return err
	}
	hosts, err := f.hosts.lookedUp(ctx, sys)
	if err != nil {
		return interrupted(ctx, err)
	}
	if f.dir == "" {
		if f.dir, err = sshFolder(sys, "known_hosts.d"); err != nil {
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
		options.Resolve = resolveHost
	}
	result, err := tidy.Split(ctx, x, f.dir, options)
	if err != nil && hintOf(err) == "" {
		err = withHint(err, "nothing was changed in "+strings.Join(x.Files(), ", "))
	}
	if err != nil {
		return interrupted(ctx, err)
	}
	if err := f.print(sys, result, config); err != nil {
		return err
	}
	return findings.Split(sys.Stderr, result)
}

// resolveHost asks the system for the addresses of a host.
func resolveHost(ctx context.Context, name string) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return net.DefaultResolver.LookupHost(ctx, name)
}

// print writes the configuration, or everything as JSON.
func (f *splitFlags) print(sys System, result tidy.SplitResult, config string) error {
	if !f.json {
		_, err := io.WriteString(sys.Stdout, config)
		return err
	}
	return termsafe.WriteJSON(sys.Stdout, struct {
		Schema string `json:"schema"`
		tidy.SplitResult
		Config string `json:"config"`
	}{"sshpace.known-hosts.split/1", result, config}, "  ")
}
