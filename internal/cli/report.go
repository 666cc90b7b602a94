package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/bench"
	"sshpace/internal/rank"
	render "sshpace/internal/report"
	"sshpace/internal/unit"
)

// reportFormats are the values of --format.
var reportFormats = []string{"text", "json", "classic"}

func newReportCommand(sys System) *cobra.Command {
	var format, by, size, machine string
	var classic render.ClassicOptions
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
the averages, as seconds for a copy of --size.`,
		Example: `  sshpace report result.jsonl
  sshpace report --format json result.jsonl | jq '.bulk[0]'
  sshpace report --format classic --size 4G --top 3 result.jsonl`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				newest, err := newestRecordFile()
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
			for i, path := range args {
				r, err := rankFile(path, order)
				if err != nil {
					return err
				}
				if i > 0 {
					fmt.Fprintln(sys.Stdout)
				}
				if err := addCeilings(r, machine); err != nil {
					return err
				}
				if err := writeReport(sys, format, r, classic); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&format, "format", "text", "text, json or classic")
	flags.StringVar(&by, "rank-by", "auto", "throughput, cost or auto: throughput unless only the cost can be told from noise")
	flags.StringVar(&machine, "machine", "", "limits of the machine that sshpace machine recorded (default: the newest of this machine)")
	flags.StringVar(&size, "size", "4G", "classic: bytes of the copy")
	flags.IntVar(&classic.Top, "top", 5, "classic: rows of each list")
	flags.BoolVar(&classic.Worst, "worst", false, "classic: slowest first")
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("rank-by", cobra.FixedCompletions([]string{"auto", "throughput", "cost"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// writeReport renders a ranking in one of reportFormats.
func writeReport(sys System, format string, r *rank.Ranking, classic render.ClassicOptions) error {
	switch format {
	case "text":
		return render.Text(sys.Stdout, r)
	case "json":
		return render.JSON(sys.Stdout, r)
	case "classic":
		return withHint(render.Classic(sys.Stdout, r, classic), "bench without --kex-only measures them")
	}
	return usageError("formats: "+strings.Join(reportFormats, ", "), "unknown format %q", format)
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
	file, err := os.Open(path)
	if err != nil {
		return nil, withHint(err, "bench writes such files; --out names them")
	}
	defer file.Close()
	records, err := bench.Load(file)
	if err != nil {
		return nil, withHint(fmt.Errorf("%s: %w", path, err), "report reads the .jsonl files that sshpace bench writes")
	}
	r, err := rank.Of(records, rank.Options{By: by})
	if errors.Is(err, rank.ErrNoSamples) {
		return nil, withHint(fmt.Errorf("%s: %w", path, err), "run it again, or go on with sshpace bench --resume "+path)
	}
	return r, err
}
