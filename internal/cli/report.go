package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
	"sshpace/internal/classic"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
)

type reportFlags struct {
	by, machine, policy string
	size                byteLimit
	classic             classic.Options
	shown               document.Options
	anonymous           bool
	against             string
	out                 outputFlags
}

func newReportCommand(sys System) *cobra.Command {
	f := reportFlags{size: 4 << 30}
	cmd := page("report", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, sys, args) },
	})
	flags := cmd.Flags()
	f.out.add(cmd, true)
	flags.StringVar(&f.policy, "policy", "modern", "security policy for the advice and, if given, for tables and charts: a name such as modern or fips-140-3, or a TOML `FILE`")
	flags.BoolVar(&f.shown.All, "all", false, "text, pictures: all combinations, including those never advised")
	flags.BoolVar(&f.shown.Method, "method", false, "text: explain the method, how far to trust it, and the terms")
	flags.StringVar(&f.by, "rank-by", "auto", "throughput, cost or auto: throughput, unless only the cost differs significantly")
	flags.StringVar(&f.machine, "machine", "", "limits recorded by sshpace limits (default: the newest of this machine)")
	flags.BoolVar(&f.anonymous, "anonymize", false, "leave out names, paths, times of day and free text")
	flags.StringVar(&f.against, "against", "", "of a survey: show what has changed since this earlier one")
	flags.Var(&f.size, "size", "classic: bytes of the copy")
	flags.IntVar(&f.classic.Top, "top", 5, "classic: rows of each list")
	flags.BoolVar(&f.classic.Worst, "worst", false, "classic: slowest first")
	completeResults(cmd, sys)
	completePolicies(cmd)
	_ = cmd.RegisterFlagCompletionFunc("rank-by", cobra.FixedCompletions(choices["rank-by"], cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (f *reportFlags) run(cmd *cobra.Command, sys System, args []string) error {
	if err := classicOnly(cmd, f.out); err != nil {
		return err
	}
	if f.out.Format == format.Records && !f.anonymous {
		return usageError("add --anonymize", "%s is the result itself", format.Records)
	}
	newest, err := store.Of(sys.Getenv).Newest()
	if len(args) == 0 {
		if err != nil {
			return err
		}
		args = []string{newest}
		if len(f.out.Out) > 0 || f.out.JSON || f.out.Format != "" {
			fmt.Fprintf(sys.Stderr, "report of %s\n", oneLine(newest))
		}
	}
	paths, err := store.Of(sys.Getenv).Named(args, connectionFlags{}.label, store.Shows)
	if err != nil {
		return err
	}
	twice(sys, paths, "")
	f.classic.Size, f.out.Fold, f.out.Same = unit.Bytes(f.size), hostset.Fold, output.WithoutHost
	renderings, err := f.out.Renderings(sys.Stdout)
	if err != nil {
		return err
	}
	if len(paths) > 1 && !f.out.OnlyText() {
		return usageError("report them one by one, or use sshpace compare", "%d files do not fit into one report", len(paths))
	}
	if err := choose("rank-by", f.by); err != nil {
		return err
	}
	f.shown.Only = cmd.Flags().Changed("policy") && !f.shown.All
	wanted := format.Wanted{
		Ranking: format.Ranking{Classic: f.classic.Write, Output: f.out.Output, Options: f.shown},
		Policy:  f.policy, By: rank.By(f.by), Machine: f.machine, Anonymous: f.anonymous, Against: f.against,
	}
	for i, path := range paths {
		if i > 0 {
			fmt.Fprintln(sys.Stdout)
		}
		report, err := format.Of(store.Of(sys.Getenv), path, path == newest, wanted)
		if err != nil {
			return err
		}
		if err := f.out.Write(sys.Stdout, sys.Stderr, renderings, report); err != nil {
			return err
		}
	}
	return nil
}

// classicOnly refuses flags of the classic format that would do nothing.
func classicOnly(cmd *cobra.Command, out outputFlags) error {
	for _, name := range []string{"size", "top", "worst"} {
		if cmd.Flags().Changed(name) && out.Format != "classic" {
			return usageError("add --format classic", "--%s has no effect in other formats", name)
		}
	}
	return nil
}
