//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/doctor"
	"sshpace/internal/bench/helper"
	"sshpace/internal/campaign"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
)

type doctorFlags struct {
	endFlags
	foundFlags
	length      roundFlags
	only        []string
	list, quiet bool
	all         bool
}

func newDoctorCommand(sys System) *cobra.Command {
	var f doctorFlags
	cmd := page("doctor", &cobra.Command{
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(cmd.Context(), sys, f, args) },
	})
	cmd.Flags().StringArrayVar(&f.only, "only", nil, "only these checks: names or globs; repeatable")
	cmd.Flags().BoolVar(&f.list, "list", false, "print the names of the checks and do not log in")
	f.length.register(cmd.Flags(), 0)
	cmd.Flags().Lookup("rounds").Usage = "rounds of one login each (default 3 with a host, otherwise 5)"
	cmd.Flags().BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	cmd.Flags().BoolVar(&f.all, "all", false, "show all in full, including normal waits and more than fits on one screen")
	f.endFlags.register(cmd.Flags(), connectTimeout)
	f.foundFlags.register(cmd.Flags())
	f.connection.register(cmd.Flags())
	completeMeasurement(cmd, sys, &f.endFlags)
	return cmd
}

func runDoctor(ctx context.Context, sys System, f doctorFlags, args []string) error {
	checks := doctor.Named(splitLists(f.only))
	if f.list {
		var items []campaign.Item
		for _, c := range doctor.Checks {
			items = append(items, campaign.Item{Name: c.Name, About: c.About})
		}
		return campaign.List(sys.output(f.JSON), items)
	}
	if len(checks) == 0 {
		return usageError("sshpace doctor --list names the checks", "unknown check %q", strings.Join(f.only, ","))
	}
	rounds, err := f.length.of(0)
	if err := cmp.Or(err, f.Check()); err != nil {
		return err
	}
	drain, _, stop := interrupts(ctx, sys)
	defer stop()
	return interrupted(drain, withDir(sys, safedir.WorkdirParams{}, func(dir *safedir.Workdir) error {
		p := doctor.Params{Params: f.bed(sys, openssh.Destination{}, "random"), Host: strings.Join(args, ""), Logins: rounds, Progress: progress(sys, f.quiet, "")}
		p.Dir, p.Helper = dir, helper.Line
		patient, facts, err := doctor.Open(drain, p)
		if err != nil {
			return err
		}
		return errors.Join(f.examine(drain, sys, patient, facts, checks), patient.Close())
	}))
}

// examine lets the checks judge the logins, and prints the findings.
func (f doctorFlags) examine(drain context.Context, sys System, patient *doctor.Patient, facts *doctor.Facts, checks []doctor.Check) error {
	failed := patient.Examine(drain, doctor.Needs(checks), facts)
	r := findings.Diagnose(facts, checks, failed == nil)
	if failed != nil && drain.Err() == nil && len(r.Findings) == 0 {
		return failed
	}
	if failed == nil && !r.Complete && len(r.Findings) == 0 {
		return withHint(fmt.Errorf("%s: the login failed, and these checks do not say why", facts.Label), "leave --only out")
	}
	text := func(w io.Writer) error { return r.Text(w, terminal.Width(w, sys.Getenv), f.all) }
	if err := f.show(sys, text, r.JSON); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	if doctor.Faults(r.Findings) {
		return fault.Exit(ExitFound)
	}
	return nil
}
