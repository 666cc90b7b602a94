package cli

import (
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/findings"
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
			order, err := parseBy(by)
			if err != nil {
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
			if args, err = alike(sys, args); err != nil {
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
			report, err := out.Related(args, pairs)
			switch {
			case err != nil:
			case report != nil:
				err = onlyCells(cmd.Flags(), args[0])
			case len(pairs) > 0:
				err = usageError("leave it out", "--pair is for results of programs")
			default:
				c, failed := compare.CompareFiles(args, allowed, compare.Options{By: order, Normalize: normalize, Figures: figures})
				report, err = &format.Comparison{Comparison: c, All: all, Output: out.Output}, failed
			}
			if err != nil {
				return err
			}
			judged, judges := report.(findings.Judged)
			if asked != nil && !judges {
				return usageError("compare results of sshpace bench", "--fail-on has no meaning for logins")
			}
			var gate *compare.Gate
			if asked != nil {
				if gate = judged.Judge(*asked); len(gate.Lines) == 0 {
					return usageError("use --fail-on slower:5%", "the files have no %s in common", asked.Lines)
				}
			}
			if err := out.Write(sys.Stdout, sys.Stderr, renderings, report); err != nil || gate == nil {
				return err
			}
			return findings.Gate(sys.Stderr, judged, gate)
		},
	})
	flags := cmd.Flags()
	out.add(cmd, false)
	flags.BoolVar(&all, "all", false, "text: all lines, including unchanged ones")
	flags.StringVar(&policyName, "policy", "", "only what a security policy allows, such as modern, or a TOML `FILE`")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: cost where all files have it")
	flags.StringSliceVar(&normalize, "normalize", nil, "ciphers (names or globs) whose mean becomes 1 in each file")
	flags.StringArrayVar(&figures, "figure", nil, "only these figures besides SSH: a name or a glob; repeatable")
	flags.StringVar(&limit, "fail-on", "", "such as slower:5%: exit status 3 if something is slower by more, 5 if something may be, else 0")
	flags.StringArrayVar(&pairs, "pair", nil, "results of programs: the `CLIENT:SERVER` to compare, once for each file or pair")
	completeResults(cmd, sys)
	completePolicies(cmd)
	return cmd
}

// onlyCells refuses flags that speak of combinations of algorithms.
func onlyCells(flags *pflag.FlagSet, path string) error {
	for _, name := range []string{"all", "policy", "rank-by", "normalize", "figure"} {
		if flags.Changed(name) {
			return usageError("leave it out", "--%s has no meaning for what %s holds", name, path)
		}
	}
	return nil
}
