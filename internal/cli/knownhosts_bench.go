package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
)

// knownHostsBenchFlags are the flags of `sshpace known-hosts bench`.
type knownHostsBenchFlags struct {
	files  knownHostsFiles
	rounds int
	ssh    string
	json   bool
}

func newKnownHostsBenchCommand(sys System) *cobra.Command {
	var f knownHostsBenchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what a known_hosts file costs each login",
		Long: `Logs in with the real ssh, again and again, to a server of its own on loopback that
costs next to nothing, and measures the processor time of ssh with the lines of your
file in three layouts: split (one line), plain and hashed. The layouts take turns. Your
file is only read.

UpdateHostKeys, which ssh turns on by itself for ~/.ssh/known_hosts, makes it read the
file once more per login; both settings are measured. The last line is what the same
file costs sshpace run, which reads it once.`,
		Example: `  sshpace known-hosts bench
  sshpace known-hosts bench --known-hosts fleet_hosts --rounds 50 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runKnownHostsBench(cmd.Context(), sys, f) },
	}
	f.files.register(cmd.Flags())
	cmd.Flags().IntVar(&f.rounds, "rounds", 20, "logins per layout and setting")
	cmd.Flags().StringVar(&f.ssh, "ssh", "", "path of ssh")
	cmd.Flags().BoolVar(&f.json, "json", false, "print the numbers as JSON")
	return cmd
}

func runKnownHostsBench(ctx context.Context, sys System, f knownHostsBenchFlags) (err error) {
	if f.rounds < 1 {
		return usageError("such as --rounds 20", "--rounds %d", f.rounds)
	}
	if len(f.files) > 1 {
		return usageError("measure one file after the other", "more than one --known-hosts")
	}
	_, ctx, stop := interrupts(ctx, sys)
	defer stop()
	x, err := f.files.open(sys)
	if err != nil {
		return err
	}
	client, err := openssh.FindClient(ctx, f.ssh)
	if err != nil {
		return interrupted(ctx, withHint(err, "install the OpenSSH client or name it with --ssh"))
	}
	dir, err := privateDir(sys)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	cost, err := knownhosts.MeasureCost(ctx, x.Files()[0], knownhosts.CostOptions{SSH: client.Path, Dir: dir.Path, Rounds: f.rounds,
		Progress: newProgressLine(sys, "rounds").report})
	if err != nil {
		return interrupted(ctx, withHint(err, "see whether this ssh works at all: "+client.Path+" -V"))
	}
	if f.json {
		return writeDocument(sys.Stdout, costDocument(cost, client.Version))
	}
	return printCost(sys.Stdout, cost, client.Version)
}

// printCost prints the table for people. Times are milliseconds of processor
// time, medians with 95 % intervals.
func printCost(w io.Writer, c knownhosts.Cost, version string) error {
	fmt.Fprintf(w, "%s: %s, %d of them hashed, %s\n", c.File, unit.Count(c.Lines, "line"), c.HashedLines, unit.Bytes(c.Bytes))
	fmt.Fprintf(w, "Processor time of one login with %s, median of %d [95 %% interval]:\n\n", oneLine(version), c.Rounds)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "layout\tUpdateHostKeys\tssh\tdue to the file")
	for _, row := range c.OpenSSH {
		name, update := row.Layout, "no"
		if row.AsItIs {
			name += " (as it is)"
		}
		if row.UpdateHostKeys {
			update = "yes"
		}
		extra := "-"
		if row.Layout != "split" {
			extra = milliseconds(row.Extra)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", name, update, milliseconds(row.CPU), extra)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\nsshpace run: %s once, then %.1f us per host [%.1f, %.1f] (median of %d times %d names)\n",
		costAdvice(c), milliseconds(c.Index.Load), c.Index.Lookup.Value/1e3, c.Index.Lookup.Lo/1e3, c.Index.Lookup.Hi/1e3, c.Index.Lookup.N, c.Index.Names)
	return err
}

// costAdvice says what the numbers mean for the layout that the file has.
func costAdvice(c knownhosts.Cost) string {
	var update, plain stats.Interval
	for _, row := range c.OpenSSH {
		switch {
		case row.AsItIs && row.UpdateHostKeys:
			update = row.Extra
		case row.AsItIs:
			plain = row.Extra
		}
	}
	if update.Lo < minGain {
		return "There is nothing to gain by splitting this file."
	}
	text := fmt.Sprintf("Splitting this file saves ssh %.0f ms of processor time per login: sshpace known-hosts split.", update.Value/1e6)
	if gain := update.Lo - plain.Hi; gain > minGain {
		text += fmt.Sprintf("\nWithout splitting, UpdateHostKeys no saves %.0f ms of them, but new host keys are no longer learned.", gain/1e6)
	}
	return text
}

// minGain is the saving per login, in nanoseconds, from which a change is worth
// the trouble.
const minGain = 1e6

func milliseconds(i stats.Interval) string {
	return fmt.Sprintf("%.2f ms [%.2f, %.2f]", i.Value/1e6, i.Lo/1e6, i.Hi/1e6)
}

// interval is an interval in JSON.
type interval struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	N     int     `json:"n"`
}

func intervalOf(i stats.Interval) interval { return interval{i.Value, i.Lo, i.Hi, i.N} }

// costRow is one measured layout in JSON.
type costRow struct {
	Layout         string   `json:"layout"`
	AsItIs         bool     `json:"as_it_is"`
	UpdateHostKeys bool     `json:"update_host_keys"`
	CPU            interval `json:"cpu_ns"`
	Extra          interval `json:"extra_ns"`
}

// costResult is all of it in JSON.
type costResult struct {
	Schema      string    `json:"schema"`
	File        string    `json:"file"`
	Lines       int       `json:"lines"`
	HashedLines int       `json:"hashed_lines"`
	Bytes       int64     `json:"file_bytes"`
	SSH         string    `json:"ssh"`
	OpenSSH     []costRow `json:"openssh"`
	Load        interval  `json:"index_load_ns"`
	Lookup      interval  `json:"index_lookup_ns"`
	Names       int       `json:"index_names"`
}

func costDocument(c knownhosts.Cost, version string) costResult {
	d := costResult{Schema: "sshpace.known-hosts.bench/1", File: c.File, Lines: c.Lines, HashedLines: c.HashedLines, Bytes: c.Bytes, SSH: version,
		Load: intervalOf(c.Index.Load), Lookup: intervalOf(c.Index.Lookup), Names: c.Index.Names}
	for _, row := range c.OpenSSH {
		d.OpenSSH = append(d.OpenSSH, costRow{row.Layout, row.AsItIs, row.UpdateHostKeys, intervalOf(row.CPU), intervalOf(row.Extra)})
	}
	return d
}
