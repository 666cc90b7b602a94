//go:build linux

package cli

import (
	"cmp"
	"context"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/programs"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

func newProgramsCommand(sys System) *cobra.Command {
	var f methodFlags
	cmd := page("programs", &cobra.Command{
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("leave the host out", "programs starts private servers on loopback")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runPrograms(cmd.Context(), sys, cmd.Flags(), &f)
		},
	})
	flags := cmd.Flags()
	f.register(flags)
	flags.StringSliceVar(&f.only, "only", nil, "only these pairs, `CLIENT:SERVER`, such as putty:openssh,dropbear:*")
	completeMeasurement(cmd, sys, &f.endFlags)
	return cmd
}

// runPrograms is the command.
func runPrograms(ctx context.Context, sys System, flags *pflag.FlagSet, f *methodFlags) error {
	file, err := f.adopted(sys, "programs", flags, new([]string))
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	paths, pathErr := transfer.Paths(f.rtt, f.rate, f.loss)
	if err := cmp.Or(f.check(), programs.Check(f.only, f.ciphers, f.macs), pathErr); err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return withHint(err, "add the user to /etc/passwd: servers look it up there")
	}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	p, err := f.params(sys, flags, "programs", file)
	if err != nil {
		return err
	}
	environment := hostinfo.Describe(testbed.LoadLook)
	if file != nil {
		if err := (&testbed.Testbed{Target: testbed.Loopback, Environment: environment}).Resumes(file.Old, alg.Offer{}); err != nil {
			return err
		}
	}
	params := programs.Params{
		Only: f.only, SSH: f.ssh, SSHD: f.sshd, Ciphers: alg.NamesOf(alg.Cipher, f.ciphers), MAC: strings.Join(f.macs, ""),
		AES: slices.Contains(environment.CPUFeatures, "aesni") || slices.Contains(environment.CPUFeatures, "aes"), Random: f.data == "random", Paths: paths,
	}
	p.Name, p.Campaign.Target, p.Environment = "programs", testbed.Loopback, &environment
	return interrupted(drain, withDir(sys, inMemory, func(dir *safedir.Workdir) error {
		spawner := proc.NewSpawner()
		defer spawner.Close()
		b := &programs.Setup{Dir: dir, Spawner: spawner, User: me.Username, Home: me.HomeDir, Helper: helper.Line, Connect: time.Duration(f.connect)}
		if err := programs.Usable(drain, f.ssh, f.sshd); err != nil {
			return err
		}
		return campaign.Methods(drain, p, func(turns transfer.Turns, sink record.Sink) error {
			params.Turns = turns
			return b.Measure(ctx, drain, params, sink)
		})
	}))
}
