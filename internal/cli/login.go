//go:build linux

package cli

import (
	"cmp"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/bench/login"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/campaign"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// loginFlags are the flags of `sshpace login`.
type loginFlags struct {
	recordFlags
	kex    []string
	only   []string
	full   bool
	engine string
	length roundFlags

	asked campaign.LoginParams // the selection by all of these
}

func newLoginCommand(sys System) *cobra.Command {
	var f loginFlags
	cmd := f.command(sys, "login", takes(0, 1), &f)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringSliceVar(&f.only, "only", nil, "compare only these: "+strings.Join(login.FactorNames(), ", ")+"; none for the plain login alone")
	flags.BoolVar(&f.full, "full", false, "every key exchange with every host key and every user key")
	flags.StringVar(&f.engine, "engine", "", "client: openssh, or native for the one of sshpace run (default: openssh)")
	f.length.register(flags, 0)
	flags.Lookup("rounds").Usage += " (default 5 with a host)"
	flags.Lookup("budget").Usage += " (default 1m on the private server)"
	f.endFlags.register(flags, connectTimeout)
	f.resultFlags.register(flags)
	f.connection.register(flags)
	completeMeasurement(cmd, sys, &f.endFlags)
	return cmd
}

// adopt takes over the plan of a resumed file.
func (f *loginFlags) adopt(flags *pflag.FlagSet, c record.Campaign, hostGiven bool) error {
	f.kex, f.only, f.full = c.Asked["kex"], c.Asked["only"], len(c.Asked["full"]) > 0
	f.engine, f.seed = string(c.Engine), c.Seed
	if !flags.Changed("rounds") && !flags.Changed("budget") {
		f.length = roundFlags{c.Rounds, seconds(c.BudgetNS)}
	}
	return unfit(f.resume, f.check(flags, hostGiven))
}

// check refuses flags that make no sense, and parses the others.
func (f *loginFlags) check(_ *pflag.FlagSet, hostGiven bool) error {
	length, err := f.length.of(0)
	f.asked = campaign.LoginParams{
		Native: f.engine == "native", Kex: f.kex, Factors: f.only, Full: f.full,
		Plan: login.Plan{Plan: rounds.Plan{Rounds: length, Seed: f.seed, List: f.list}}, Tool: toolVersion(),
	}
	return cmp.Or(choose("engine", f.engine), err, f.asked.Check(hostGiven))
}

// measure prepares client and server, measures and reports.
func (f *loginFlags) measure(sys System, m measurement) (err error) {
	p := f.asked
	if p.Program, err = os.Executable(); err != nil {
		return err
	}
	p.Output = m.Output
	ends := f.bed(sys, m.destination, "zero")
	ends.Login, ends.Once = login.WholeLogin*f.limit(), true
	return withTestbed(m.drain, sys, safedir.WorkdirParams{}, ends, func(bed *testbed.Testbed) (err error) {
		ends, err := login.Between(bed.Bed, bed.Dir.Path)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ends.Close()) }()
		return campaign.Logins(m.drain, bed, ends, p)
	})
}
