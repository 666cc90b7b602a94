package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/record/anonymize"
	"sshpace/internal/record/store"
	render "sshpace/internal/show/report"
	"sshpace/internal/verdict/rank"
)

func newReportCommand(sys System) *cobra.Command {
	var by, size, machine string
	var classic render.ClassicOptions
	var anonymous bool
	var out outputFlags
	cmd := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "Rank what a bench run recorded",
		Long: `Ranks the combinations of cipher and MAC, and the key exchanges, of recorded runs;
without a FILE, of the last one that bench gave a name to.

Every number comes with its 95 % interval. Cells that cannot be told apart share a
group letter. A cell is measured, or predicted from the costs of its cipher and its
MAC; the error of such predictions is measured on held-out cells and reported.

The classic format prints the lists that shell loops over all ciphers, MACs and key
exchanges used to print: the best overall, for each cipher, MAC and key exchange, and
the averages, as seconds for a copy of --size.

--out writes files, in the format that their ending says: .html is one page with
interactive charts that needs no network, .xlsx a workbook with the raw samples, .svg
and .png pictures, .csv and .md tables to paste, .json for programs, .txt for people.

--anonymize makes any of them fit to be shown to others: hosts, users and places of
programs are called host1, user1, path1, the run starts at midnight, and free text
(messages, findings, comments of banners, names that no table knows) is left out.
The measured values stay; with --format jsonl the result itself is written so, for
people who want to report and compare it.`,
		Example: `  sshpace report result.jsonl
  sshpace report result.jsonl --out result.html --out result.xlsx
  sshpace report --format json result.jsonl | jq '.bulk[0]'
  sshpace report --format classic --size 4G --top 3 result.jsonl
  sshpace report --anonymize --format jsonl result.jsonl > shared.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := classicOnly(cmd, out, classic.Top); err != nil {
				return err
			}
			if out.format == recordFormat && !anonymous {
				return usageError("add --anonymize", "%s is the result itself", recordFormat)
			}
			if len(args) == 0 {
				newest, err := store.Of(sys.Getenv).Newest()
				if err != nil {
					return err
				}
				args = []string{newest}
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
			targets, err := out.targets(sys)
			if err != nil {
				return err
			}
			if len(args) > 1 && !out.onlyText() {
				return usageError("report them one by one, or relate them with sshpace compare", "%d files do not fit into one report", len(args))
			}
			disguise := func(f *record.File) *record.File { return f }
			if anonymous {
				disguise = anonymize.File
			}
			for i, path := range args {
				r, records, err := loadRanking(path, order, disguise)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(sys.Stdout)
				}
				if err := addCeilings(sys, r, machine, disguise); err != nil {
					return err
				}
				if err := out.write(sys, targets, &rankingReport{r: r, records: records, classic: classic, out: out}); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	out.add(cmd, true)
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: throughput unless only the cost can be told from noise")
	flags.StringVar(&machine, "machine", "", "limits of the machine that sshpace machine recorded (default: the newest of this machine)")
	flags.BoolVar(&anonymous, "anonymize", false, "leave out what tells whose result it is: names, paths, times of day, free text")
	flags.StringVar(&size, "size", "4G", "classic: bytes of the copy")
	flags.IntVar(&classic.Top, "top", 5, "classic: rows of each list")
	flags.BoolVar(&classic.Worst, "worst", false, "classic: slowest first")
	_ = cmd.RegisterFlagCompletionFunc("rank-by", cobra.FixedCompletions([]string{"auto", "throughput", "cost"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// classicOnly refuses flags of the classic format that would do nothing.
func classicOnly(cmd *cobra.Command, out outputFlags, top int) error {
	for _, name := range []string{"size", "top", "worst"} {
		if cmd.Flags().Changed(name) && out.format != "classic" {
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
	return "", usageError("use throughput, cost or auto", "cannot rank by %q", name)
}

// rankFile reads and ranks one record file.
func rankFile(path string, by rank.By) (*rank.Ranking, error) {
	r, _, err := loadRanking(path, by, func(f *record.File) *record.File { return f })
	return r, err
}

// loadRanking is rankFile with the records themselves, both as they are after a
// change.
func loadRanking(path string, by rank.By, change func(*record.File) *record.File) (*rank.Ranking, *record.File, error) {
	records, err := store.Load(path)
	if err != nil {
		return nil, nil, err
	}
	records = change(records)
	r, err := rank.Of(records, rank.Options{By: by})
	if errors.Is(err, rank.ErrNoSamples) {
		return nil, nil, withHint(fmt.Errorf("%s: %w", path, err), "run it again, or go on with sshpace bench --resume "+path)
	}
	return r, records, err
}
