package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/anonymize"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
	render "sshpace/internal/show/report"
)

func newReportCommand(sys System) *cobra.Command {
	var by, size, machine, policyName string
	var classic render.ClassicOptions
	var anonymous bool
	var shown document.Options
	var out outputFlags
	cmd := page("report", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := classicOnly(cmd, out, classic.Top); err != nil {
				return err
			}
			if out.Format == format.Records && !anonymous {
				return usageError("add --anonymize", "%s is the result itself", format.Records)
			}
			newest, _ := store.Of(sys.Getenv).Newest()
			if len(args) == 0 {
				var err error
				if newest, err = store.Of(sys.Getenv).Newest(); err != nil {
					return err
				}
				args = []string{newest}
				if len(out.Out) > 0 || out.JSON || out.Format != "" {
					fmt.Fprintf(sys.Stderr, "report of %s\n", oneLine(newest))
				}
			}
			args, err := resultsOf(sys, args)
			if err != nil {
				return err
			}
			policy, err := advise.Load(policyName)
			if err != nil {
				return err
			}
			bytes, err := unit.ParseBytes(size)
			if err != nil {
				return usageError("such as --size 4G", "%s", err)
			}
			classic.Size = bytes
			order, err := parseBy(by)
			if err != nil {
				return err
			}
			renderings, err := out.Renderings(sys.Stdout)
			if err != nil {
				return err
			}
			if len(args) > 1 && !out.OnlyText() {
				return usageError("report them one by one, or relate them with sshpace compare", "%d files do not fit into one report", len(args))
			}
			disguise := func(f *record.File) *record.File { return f }
			if anonymous {
				disguise = anonymize.File
			}
			for i, path := range args {
				if i > 0 {
					fmt.Fprintln(sys.Stdout)
				}
				records, err := compare.Load(path, disguise)
				if err != nil {
					return err
				}
				if len(records.LoginKinds) > 0 {
					if err := out.Write(sys.Stdout, sys.Stderr, renderings, &format.Logins{Records: records, Output: out.Output, All: shown.All}); err != nil {
						return err
					}
					continue
				}
				if len(records.Methods) > 0 && len(records.Samples) == 0 {
					if err := out.Write(sys.Stdout, sys.Stderr, renderings, &format.Methods{Records: records, Output: out.Output}); err != nil {
						return err
					}
					continue
				}
				r, err := compare.RankRecords(path, records, order)
				if err != nil {
					return err
				}
				if err := compare.Ceilings(store.Of(sys.Getenv), r, machine, disguise); err != nil {
					return err
				}
				x := &format.Ranking{Ranking: r, Records: records, Classic: classic, Output: out.Output, Options: shown}
				x.Options.Choice, x.Options.Limit = advise.Of(r, advise.Options{Policy: policy}), out.Limit
				x.Options.Only = cmd.Flags().Changed("policy") && !shown.All
				x.Options.File, x.Options.Commands = path, format.Commands(path, newest, policyName)
				x.Options.Shown = store.Of(sys.Getenv).Shown(path)
				if anonymous {
					x.Options.File, x.Options.Shown, x.Options.Commands = "", "", document.Standard
				}
				if err := out.Write(sys.Stdout, sys.Stderr, renderings, x); err != nil {
					return err
				}
			}
			return nil
		},
	})
	flags := cmd.Flags()
	out.add(cmd, true)
	flags.StringVar(&policyName, "policy", "modern", "what may be advised, and, if it is given, what tables and charts show: a security policy such as modern or fips-140-3, or a TOML `FILE`")
	flags.BoolVar(&shown.All, "all", false, "text: all combinations, also what is never advised")
	flags.BoolVar(&shown.Method, "method", false, "text: how it was measured, how far to trust it, what the words mean")
	flags.IntVar(&out.Limit, "limit", 0, "text, md, csv: `ROWS` of each table (default: text: what fits on a screen; -1: all)")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: throughput, unless only the cost differs significantly")
	flags.StringVar(&machine, "machine", "", "limits of the machine that sshpace limits recorded (default: the newest of this machine)")
	flags.BoolVar(&anonymous, "anonymize", false, "leave out what tells whose result it is: names, paths, times of day, free text")
	flags.StringVar(&size, "size", "4G", "classic: bytes of the copy")
	flags.IntVar(&classic.Top, "top", 5, "classic: rows of each list")
	flags.BoolVar(&classic.Worst, "worst", false, "classic: slowest first")
	completeResults(cmd, sys)
	completePolicies(cmd)
	_ = cmd.RegisterFlagCompletionFunc("rank-by", cobra.FixedCompletions([]string{"auto", "throughput", "cost"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// classicOnly refuses flags of the classic format that would do nothing.
func classicOnly(cmd *cobra.Command, out outputFlags, top int) error {
	for _, name := range []string{"size", "top", "worst"} {
		if cmd.Flags().Changed(name) && out.Format != "classic" {
			return usageError("add --format classic", "--%s says nothing in other formats", name)
		}
	}
	if top < 1 {
		return usageError("such as --top 5", "a list of %d rows is none", top)
	}
	return nil
}

// parseBy reads --rank-by.
func parseBy(name string) (rank.By, error) {
	switch by := rank.By(name); by {
	case rank.Auto, rank.Throughput, rank.Cost:
		return by, nil
	}
	names := []string{string(rank.Auto), string(rank.Throughput), string(rank.Cost)}
	return "", usageError(fault.Near("--rank-by ", name, names, "use throughput, cost or auto"), "cannot rank by %q", name)
}
