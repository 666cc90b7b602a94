package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
)

func newCompareCommand(sys System) *cobra.Command {
	var by, limit, policyName string
	var all bool
	var out outputFlags
	var normalise, figures, pairs []string
	cmd := page("compare", &cobra.Command{
		Args: takes(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			order, err := parseBy(by)
			if err != nil {
				return err
			}
			asked, err := parseFailOn(limit)
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
				c, failed := compare.CompareFiles(args, allowed, compare.Options{By: order, Normalise: normalise, Figures: figures})
				report, err = &format.Comparison{Comparison: c, All: all, Output: out.Output}, failed
			}
			if err != nil {
				return err
			}
			judged, judges := report.(comparison)
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
			return gateResult(sys, judged, gate)
		},
	})
	flags := cmd.Flags()
	out.add(cmd, false)
	flags.BoolVar(&all, "all", false, "text: all lines, also what did not change")
	flags.StringVar(&policyName, "policy", "", "only what a security policy allows, such as modern, or a TOML `FILE`")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: cost where all files have it")
	flags.StringSliceVar(&normalise, "normalise", nil, "ciphers (names or globs) whose mean becomes 1 in each file")
	flags.StringArrayVar(&figures, "figure", nil, "only these figures besides SSH: a name or a glob; repeatable")
	flags.StringVar(&limit, "fail-on", "", "such as slower:5%: exit with 0, 3 or 5 if nothing is, something is, or may be slower by more")
	flags.StringArrayVar(&pairs, "pair", nil, "results of programs: the `CLIENT:SERVER` to compare, once for each file or pair")
	completeResults(cmd, sys)
	completePolicies(cmd)
	return cmd
}

// onlyCells refuses flags that speak of combinations of algorithms.
func onlyCells(flags *pflag.FlagSet, path string) error {
	for _, name := range []string{"all", "policy", "rank-by", "normalise", "figure"} {
		if flags.Changed(name) {
			return usageError("leave it out", "--%s has no meaning for what %s holds", name, path)
		}
	}
	return nil
}

// parseFailOn reads --fail-on, such as "slower:5%"; nil for nothing.
func parseFailOn(text string) (*compare.Limit, error) {
	if text == "" {
		return nil, nil
	}
	lines, number, _ := strings.Cut(text, ":")
	percent, err := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	if !slices.Contains(compare.LimitLines, lines) || err != nil || !(percent >= 0 && percent < 1e6) {
		return nil, usageError("use slower: and a percentage, such as slower:5%, or transfers: or logins: for these alone", "cannot read --fail-on %q", text)
	}
	return &compare.Limit{Lines: lines, Percent: percent}, nil
}

// comparison is what a gate judges.
type comparison interface {
	Judge(compare.Limit) *compare.Gate
	Shows() float64            // the least slowdown that any line could show, as a part
	More(limit float64) string // what makes it show such a difference, as a part
}

// gateResult turns what is slower, or may be, into an exit code.
func gateResult(sys System, c comparison, g *compare.Gate) error {
	percent, lines := g.Limit.Percent, unit.Count(len(g.Lines), "line")
	switch g.Outcome() {
	case compare.Fail:
		more := ""
		if failed := len(g.Failed); failed > 1 {
			more = fmt.Sprintf(" (and %d more)", failed-1)
		}
		return &Error{
			What: fmt.Sprintf("fail: %s of %g %% or more: %s%s", unit.Count(len(g.Failed), "regression"), percent, g.Failed[0], more),
			Hint: "without --fail-on, compare shows the lines with their verdicts", Code: ExitFound,
		}
	case compare.Inconclusive:
		return &Error{
			What: fmt.Sprintf("inconclusive: %d of %s may be slower by %g %% or more, such as %s: %s", len(g.Open), lines, percent, g.Open[0].Title(), g.Open[0].Range()),
			Hint: moreData(c, g), Code: ExitInconclusive,
		}
	}
	fmt.Fprintf(sys.Stderr, "pass: none of %s is slower by %g %% or more\n", lines, percent)
	return nil
}

// moreData says what makes a gate conclusive.
func moreData(c comparison, g *compare.Gate) string {
	var words []string
	if shows := document.Least(c.Shows()); shows != "" {
		words = append(words, shows)
	}
	if g.Passes <= 100 { // a larger limit is none
		words = append(words, "they pass "+compare.Limit{Lines: g.Limit.Lines, Percent: math.Ceil(g.Passes + 0.5)}.String())
	}
	if g.Limit.Lines == "slower" && !slices.ContainsFunc(g.Open, func(l compare.Line) bool { return !l.Login }) {
		words = append(words, "only logins are open: --fail-on "+compare.Limit{Lines: "transfers", Percent: g.Limit.Percent}.String())
	}
	return strings.Join(append(words, c.More(g.Limit.Percent/100)), "; ")
}
