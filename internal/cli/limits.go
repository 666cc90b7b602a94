//go:build linux

package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/limits"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/campaign"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/sys/journal"
)

type limitFlags struct {
	out, openssl, dir string
	size              byteLimit
	only              []string
	length            roundFlags
	json, list, quiet bool
}

func newLimitsCommand(sys System) *cobra.Command {
	f := limitFlags{size: 256 << 20}
	cmd := page("limits", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return runLimits(cmd.Context(), sys, f) },
	})
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "result file; - is standard output (default: a new one in the state directory)")
	flags.StringVar(&f.openssl, "openssl", "", "path of openssl")
	flags.StringVar(&f.dir, "dir", "", "directory of the file to read (default: the state directory)")
	flags.Var(&f.size, "size", "bytes of the file to read")
	flags.StringArrayVar(&f.only, "only", nil, "only these probes: names or globs; repeatable")
	f.length.register(flags, limits.DefaultRounds)
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.list, "list", false, "print the names of the probes and measure nothing")
	return cmd
}

func runLimits(ctx context.Context, sys System, f limitFlags) error {
	if f.list {
		var items []campaign.Item
		for _, name := range limits.Names() {
			items = append(items, campaign.Item{Name: name})
		}
		return campaign.List(sys.output(f.json), items)
	}
	rounds, err := f.length.of(1)
	switch err = cmp.Or(err, format.Ends(f.out, journal.Ending)); {
	case err != nil:
		return err
	case f.json && f.out == store.StandardOutput:
		return usageError("leave one of them out", "--json and --out - both write to standard output")
	case f.dir != "":
		if wrong, hint := transfer.Unusable(f.dir); wrong != "" {
			return usageError(hint, "%s", wrong)
		}
	}
	drain, _, stop := interrupts(ctx, sys)
	defer stop()
	out := sys.output(f.json)
	out.Out = f.out
	return interrupted(drain, campaign.Machine(drain, campaign.MachineParams{
		Limits: limits.Options{
			Only: f.only, Rounds: rounds, DiskDir: f.dir, DiskBytes: unit.Bytes(f.size),
			Progress: progress(sys, f.quiet, "measuring "),
		},
		OpenSSL: f.openssl, Tool: toolVersion(), Output: out,
	}))
}
