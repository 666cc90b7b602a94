package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
)

func newCompareCommand(sys System) *cobra.Command {
	var by, limit, policyName string
	var all bool
	var out outputFlags
	var normalize, figures, pairs []string
	cmd := page("compare", &cobra.Command{
		Args: takes(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := choose("rank-by", by); err != nil {
				return err
			}
			asked, err := compare.ParseLimit(limit)
			if err != nil {
				return err
			}
			renderings, err := out.Renderings(sys.Stdout)
			if err != nil {
				return err
			}
			allowed := func(r *rank.Ranking) *rank.Ranking { return r }
			if policyName != "" {
				policy, err := advise.Load(policyName)
				if err != nil {
					return err
				}
				allowed = policy.Only
			}
			if args, err = store.Of(sys.Getenv).Alike(args, connectionFlags{}.label); err != nil {
				return err
			}
			switch {
			case len(args) == 1 && len(pairs) > 1: // several pairs of one file
				args = slices.Repeat(args, len(pairs))
			case len(args) == 1:
				return format.Alone(args[0])
			case len(pairs) == 0:
				twice(sys, args, ": a result compared with itself shows nothing")
			case len(pairs) != len(args):
				return usageError("give one --pair for each file", "%s and %d --pair cannot be compared", unit.Count(len(args), "file"), len(pairs))
			}
			report, err := out.Related(store.Of(sys.Getenv), args, pairs, allowed, compare.Options{By: rank.By(by), Normalize: normalize, Figures: figures}, all)
			if err == nil && !report.Ranked() {
				err = onlyCells(cmd.Flags(), args[0])
			}
			if err == nil {
				err = report.Check(asked)
			}
			if err != nil {
				return err
			}
			if err := out.Write(sys.Stdout, sys.Stderr, renderings, report); err != nil {
				return err
			}
			return report.Ruling(sys.Stderr)
		},
	})
	flags := cmd.Flags()
	out.add(cmd, false)
	flags.BoolVar(&all, "all", false, "text: all lines, including unchanged ones")
	flags.StringVar(&policyName, "policy", "", "only choices that a security policy allows, such as modern, or a TOML `FILE`")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: cost where all files have it")
	flags.StringSliceVar(&normalize, "normalize", nil, "ciphers (names or globs) whose mean becomes 1 in each file")
	flags.StringArrayVar(&figures, "figure", nil, "only these figures that are not of SSH: a name or a glob; repeatable")
	flags.StringVar(&limit, "fail-on", "", "limit, such as slower:5% or cpu:5%: exit status 3 if a line exceeds it, 5 if a line may, otherwise 0")
	flags.StringArrayVar(&pairs, "pair", nil, "results of programs: the `CLIENT:SERVER` to compare, once for each file or pair")
	completeResults(cmd, sys)
	completePolicies(cmd)
	return cmd
}

// twice reports results that are named more than once.
func twice(sys System, paths []string, so string) {
	for _, path := range store.Repeated(paths) {
		fmt.Fprintf(sys.Stderr, "note: %s is named twice%s\n", oneLine(path), so)
	}
}

// onlyCells refuses flags about combinations of algorithms.
func onlyCells(flags *pflag.FlagSet, path string) error {
	for _, name := range []string{"all", "policy", "rank-by", "normalize", "figure"} {
		if flags.Changed(name) {
			return usageError("leave it out", "--%s does not apply to %s, which holds other results", name, path)
		}
	}
	return nil
}
