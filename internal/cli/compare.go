package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/show/format"
	"sshpace/internal/verdict/choice"
	"sshpace/internal/verdict/compare"
	"sshpace/internal/verdict/rank"
	"sshpace/internal/verdict/result"
)

func newCompareCommand(sys System) *cobra.Command {
	var by, failOn, policyName string
	var all bool
	var out outputFlags
	var normalise, figures []string
	cmd := &cobra.Command{
		Use:   "compare FILE FILE...",
		Short: "Compare recorded runs: machines, versions, before and after",
		Long: `Compares runs with the first one, cell by cell, as ratios of speed with 95 %
intervals, which hold how much runs on one machine differ as a whole. A line that
differs from the other lines by more than chance (marked *) is told whatever that
is. A verdict holds for all lines of its table together (Holm's correction). The text
shows how the files differ as a whole and what changed; --all shows every line.

With three files or more, the machines are compared by the model log(cost) = machine +
cell, and what deviates from it is listed. --normalise sets the geometric mean of the
named ciphers, as far as all files have their cells, to 1 in every file, to compare
what is left when the machines' overall speeds are taken out: --normalise '*' for all.

What the files hold besides SSH, such as imported figures of openssl speed, is shown
side by side; --figure picks some of it.

Results of bench --mode and bench --pairs are compared way by way, those of handshake
login by login.

--out writes files, in the format that their ending says: .html, .xlsx, .svg, .png,
.csv, .md, .json or .txt.`,
		Example: `  sshpace compare before.jsonl after.jsonl --fail-on slower:5%
  sshpace compare --normalise aes128-gcm@openssh.com laptop.jsonl server.jsonl board.jsonl
  sshpace compare scp-before.jsonl scp-after.jsonl
  sshpace compare --figure 'md5 1024' --figure 'block *' machines-*.jsonl`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			order, err := parseBy(by)
			if err != nil {
				return err
			}
			limit, gated, err := parseFailOn(failOn)
			if err != nil {
				return err
			}
			renderings, err := out.Renderings(sys.Stdout)
			if err != nil {
				return err
			}
			allowed := func(r *rank.Ranking) *rank.Ranking { return r }
			if policyName != "" {
				policy, err := choice.Load(policyName)
				if err != nil {
					return err
				}
				allowed = policy.Only
			}
			report, err := out.Related(args)
			switch {
			case err != nil:
			case report != nil:
				err = onlyCells(cmd.Flags(), args[0])
			default:
				c, failed := result.Compare(args, allowed, compare.Options{By: order, Normalise: normalise, Figures: figures})
				report, err = &format.Comparison{Comparison: c, All: all, Output: out.Output}, failed
			}
			if err != nil {
				return err
			}
			judge, judges := report.(regressions)
			if gated && !judges {
				return usageError("compare results of sshpace bench", "--fail-on has no meaning for logins")
			}
			if err := out.Write(sys.Stdout, sys.Stderr, renderings, report); err != nil || !gated {
				return err
			}
			return gate(judge, limit)
		},
	}
	flags := cmd.Flags()
	out.add(cmd, false)
	flags.BoolVar(&all, "all", false, "text: every line, also what did not change")
	flags.StringVar(&policyName, "policy", "", "only what a security policy allows, such as modern, or a TOML `FILE`")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: cost where all files have it")
	flags.StringSliceVar(&normalise, "normalise", nil, "ciphers (names or globs) whose mean becomes 1 in each file")
	flags.StringArrayVar(&figures, "figure", nil, "only these figures besides SSH: a name or a glob; repeatable")
	flags.StringVar(&failOn, "fail-on", "", "exit with 3 if anything is slower by more, such as slower:5%")
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

// parseFailOn reads --fail-on: "slower:5%".
func parseFailOn(text string) (percent float64, set bool, err error) {
	if text == "" {
		return 0, false, nil
	}
	number, ok := strings.CutPrefix(text, "slower:")
	percent, parseErr := strconv.ParseFloat(strings.TrimSuffix(number, "%"), 64)
	if !ok || parseErr != nil || !(percent >= 0 && percent < 1e6) {
		return 0, false, usageError("use slower: and a percentage, such as slower:5%", "cannot read --fail-on %q", text)
	}
	return percent, true, nil
}

// regressions is a comparison that names what is slower by so many percent.
type regressions interface {
	Worst(percent float64) []string
}

// gate turns regressions into exit code 3.
func gate(c regressions, limit float64) error {
	worse := c.Worst(limit)
	if len(worse) == 0 {
		return nil
	}
	count, more := "1 regression", ""
	if len(worse) > 1 {
		count, more = fmt.Sprintf("%d regressions", len(worse)), fmt.Sprintf(" (and %d more)", len(worse)-1)
	}
	return &Error{
		What: fmt.Sprintf("%s of %g %% or more: %s%s", count, limit, worse[0], more),
		Hint: "without --fail-on, compare shows all lines with their verdicts", Code: ExitFound,
	}
}
