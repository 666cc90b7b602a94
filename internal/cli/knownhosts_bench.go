package cli

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	measured "sshpace/internal/bench/hostkeys"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
)

type knownHostsBenchFlags struct {
	foundFlags
	files  knownHostsFiles
	length roundFlags
	ssh    string
	quiet  bool
}

func newKnownHostsBenchCommand(sys System) *cobra.Command {
	var f knownHostsBenchFlags
	cmd := page("known-hosts-bench", &cobra.Command{
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.files = append(f.files, args...)
			return runKnownHostsBench(cmd.Context(), sys, f)
		},
	})
	f.files.register(cmd.Flags())
	f.length.register(cmd.Flags(), measured.DefaultRounds)
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	cmd.Flags().StringVar(&f.ssh, "ssh", "", "path of ssh")
	f.register(cmd.Flags())
	return cmd
}

func runKnownHostsBench(ctx context.Context, sys System, f knownHostsBenchFlags) (err error) {
	rounds, err := f.length.of(1)
	if err = cmp.Or(err, f.Check()); err != nil {
		return err
	}
	if len(f.files) > 1 {
		return usageError("measure one file after the other", "more than one --known-hosts")
	}
	ctx, _, stop := interrupts(ctx, sys)
	defer stop()
	x, err := f.files.open(sys, false)
	if err != nil {
		return err
	}
	client, err := openssh.FindClient(ctx, f.ssh)
	if err != nil {
		return interrupted(ctx, err)
	}
	return interrupted(ctx, withDir(sys, safedir.WorkdirParams{}, func(dir *safedir.Workdir) error {
		options := measured.Options{SSH: client.Path, Dir: dir.Path, Rounds: rounds}
		if !f.quiet {
			options.Progress = terminal.NewProgress(sys.Stderr, "rounds").Report
		}
		cost, err := measured.Measure(ctx, x.Files()[0], options)
		if err != nil {
			return withHint(err, "see whether this ssh works at all: "+shell.Word(client.Path)+" -V")
		}
		return f.show(sys,
			func(w io.Writer) error { return findings.Cost(w, cost, client.Version) },
			func(w io.Writer) error { return findings.CostJSON(w, cost, client.Version) })
	}))
}
