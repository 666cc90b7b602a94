//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/login"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/sys/safedir"
)

// loginFlags are the flags of `sshpace login`.
type loginFlags struct {
	endFlags
	resultFlags
	kex    []string
	only   []string
	full   bool
	engine string
	length roundFlags
	list   bool
}

func newLoginCommand(sys System) *cobra.Command {
	var f loginFlags
	cmd := page("login", &cobra.Command{
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runLogin(cmd.Context(), sys, &f, cmd.Flags(), args)
		},
	})
	flags := cmd.Flags()
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringSliceVar(&f.only, "only", nil, "compare only these: "+strings.Join(login.FactorNames(), ", ")+"; none for the plain login alone")
	flags.BoolVar(&f.full, "full", false, "every key exchange with every host key and every user key")
	flags.StringVar(&f.engine, "engine", "", "whose logins: openssh, or native for those of sshpace run (default: openssh)")
	f.length.register(flags, 0)
	flags.Lookup("rounds").Usage += " (default 5 with a host)"
	flags.Lookup("budget").Usage += " (default 1m on the private server)"
	flags.BoolVar(&f.list, "list", false, "print the plan and measure nothing")
	f.endFlags.register(flags, patience)
	f.resultFlags.register(flags)
	f.connection.register(flags)
	completeMeasurement(cmd, sys, &f.endFlags)
	return cmd
}

func runLogin(ctx context.Context, sys System, f *loginFlags, flags *pflag.FlagSet, args []string) error {
	if err := cmp.Or(format.Ends(f.out, store.Ending), choose("engine", f.engine)); err != nil {
		return err
	}
	rounds, err := f.length.of(0)
	if err != nil {
		return err
	}
	p := campaign.LoginParams{
		Native: f.engine == "native", Kex: f.kex, Factors: f.only, Full: f.full,
		Plan: login.Plan{Rounds: rounds, Seed: cmp.Or(f.seed, rand.Uint64N(1<<53)), List: f.list},
		Tool: toolVersion(), Out: f.out, Output: f.output(sys, "login", f.endFlags.options()),
	}
	if err := p.Check(); err != nil {
		return err
	}
	file, err := campaign.Reopen(store.Of(sys.Getenv), f.resume, "login", f.connection.label, &args)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
		if err := keepPlan(flags); err != nil {
			return err
		}
		p.Adopt(file, flags.Changed)
	}
	if len(args) > 0 {
		if err := p.CheckHost(); err != nil {
			return err
		}
	}
	destination, err := f.connection.destination(args)
	if err != nil {
		return err
	}
	if p.Program, err = os.Executable(); err != nil {
		return err
	}
	ctx, _, stop := interrupts(ctx, sys)
	defer stop()
	return interrupted(ctx, withTestbed(ctx, sys, safedir.WorkdirParams{}, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.EngineOpenSSH, Data: "zero", Connect: time.Duration(f.connect), Login: login.WholeLogin * time.Duration(f.connect),
		Destination: destination, Route: f.connection.params(sys), Once: true,
	}, func(bed *testbed.Testbed) (err error) {
		ends, err := login.Between(bed, time.Duration(f.connect), bed.Rig.Dir.Path)
		if err != nil {
			return withHint(err, "install openssh-client, or name its path with --ssh")
		}
		defer func() { err = errors.Join(err, ends.Close()) }()
		return campaign.Logins(ctx, bed, ends, p)
	}))
}
