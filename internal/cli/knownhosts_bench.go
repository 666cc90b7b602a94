package cli

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	measured "sshpace/internal/bench/hostkeys"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/terminal"
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
	cmd.Flags().IntVar(&f.rounds, "rounds", 20, "rounds: logins per layout and setting")
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
	cost, err := measured.Measure(ctx, x.Files()[0], measured.Options{SSH: client.Path, Dir: dir.Path, Rounds: f.rounds,
		Progress: terminal.NewProgress(sys.Stderr, "rounds").Report})
	if err != nil {
		return interrupted(ctx, withHint(err, "see whether this ssh works at all: "+shell.Word(client.Path)+" -V"))
	}
	if f.json {
		return findings.CostJSON(sys.Stdout, cost, client.Version)
	}
	return findings.Cost(sys.Stdout, cost, client.Version)
}
