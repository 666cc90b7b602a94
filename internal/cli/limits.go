//go:build linux

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/limits"
	"sshpace/internal/record/store"
)

// limitFlags are the flags of `sshpace limits`.
type limitFlags struct {
	out, openssl, dir, size string
	only                    []string
	rounds                  int
	json, list, quiet       bool
}

func newLimitsCommand(sys System) *cobra.Command {
	var f limitFlags
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Measure what this machine can do at most, without SSH",
		Long: `Measures in about a minute what this machine can do at most: the cryptographic
primitives of its OpenSSL (with openssl speed), copying in memory, a pipe, TCP on
loopback, and reading a file with small and large blocks.

The result is recorded. Reports of this machine then show SSH's throughput as a
share of each ceiling, by the newest value of each, and name what limits it.`,
		Example: `  sshpace limits
  sshpace limits --only 'AES*' --only pipe*
  sshpace limits --json --out limits.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLimits(cmd.Context(), sys, f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "result file; - is standard output (default: a new one in the state folder)")
	flags.StringVar(&f.openssl, "openssl", "", "path of openssl")
	flags.StringVar(&f.dir, "disk-dir", "", "folder for the file that is read (default: the state folder)")
	flags.StringVar(&f.size, "disk-size", "256M", "size of that file")
	flags.StringArrayVar(&f.only, "only", nil, "only this probe; a name or a glob; repeatable")
	flags.IntVar(&f.rounds, "rounds", 3, "measure so many complete rounds")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.list, "list", false, "print the names of the probes, and measure nothing")
	return cmd
}

func runLimits(ctx context.Context, sys System, f limitFlags) error {
	if f.list {
		for _, name := range limits.Names() {
			fmt.Fprintln(sys.Stdout, name)
		}
		return nil
	}
	size, err := unit.ParseBytes(f.size)
	switch {
	case err != nil:
		return usageError("such as --disk-size 256M", "--disk-%s", err)
	case f.rounds < 1:
		return usageError("1 or more", "--rounds %d", f.rounds)
	case f.json && f.out == store.StandardOutput:
		return usageError("leave one of them out", "--json and --out - both write to standard output")
	}
	drain, _, stop := interrupts(ctx, sys)
	defer stop()
	return interrupted(drain, campaign.Machine(drain, campaign.MachineParams{
		Limits: limits.Options{
			Only: f.only, Rounds: f.rounds, DiskDir: f.dir, DiskBytes: size,
			Progress: progress(sys, f.quiet, "measuring %s\n"),
		},
		OpenSSL: f.openssl, Tool: toolVersion(), Out: f.out,
		Output: sys.output(f.json),
	}))
}
