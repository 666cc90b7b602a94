package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/verdict/choice"
	"sshpace/internal/verdict/compare"
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

--out writes files, in the format that their ending says: .html, .xlsx, .svg, .png,
.csv, .md, .json or .txt.`,
		Example: `  sshpace compare before.jsonl after.jsonl --fail-on slower:5%
  sshpace compare --normalise aes128-gcm@openssh.com laptop.jsonl server.jsonl board.jsonl
  sshpace compare --figure 'md5 1024' --figure 'block *' machines-*.jsonl`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
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
			var policy choice.Policy
			if policyName != "" {
				if policy, err = choice.Load(policyName); err != nil {
					return err
				}
			}
			if logins, err := format.LoginFiles(args); err != nil {
				return err
			} else if logins != nil {
				if gated {
					return usageError("compare results of sshpace bench", "--fail-on has no meaning for logins")
				}
				return out.Write(sys.Stdout, sys.Stderr, renderings, logins)
			}
			var inputs []compare.Input
			for _, path := range args {
				r, err := result.File(path, order)
				if err != nil {
					return err
				}
				if policyName != "" {
					r = policy.Only(r)
				}
				inputs = append(inputs, compare.Input{Label: store.Label(args, path), Ranking: r})
			}
			c, err := compare.Of(inputs, compare.Options{By: order, Normalise: normalise, Figures: figures})
			if errors.Is(err, compare.ErrNoReference) {
				return usageError("all files have cells of: "+strings.Join(compare.CommonCiphers(inputs), ", "), "%s", err)
			}
			if err != nil {
				return err
			}
			if err := out.Write(sys.Stdout, sys.Stderr, renderings, &format.Comparison{Comparison: c, All: all, Output: out.Output}); err != nil || !gated {
				return err
			}
			return gate(c, limit)
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

// gate turns regressions into exit code 3.
func gate(c *compare.Comparison, limit float64) error {
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
