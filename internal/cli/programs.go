//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/programs"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
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

// named refuses names of algorithms that nobody knows.
func named(flag string, kind alg.Kind, typed []string) error {
	for _, name := range alg.NamesOf(kind, typed) {
		if _, known := alg.Lookup(kind, name); !known {
			names := alg.Names(kind)
			return usageError(fault.Near("--"+flag+" ", name, names, "there are "+strings.Join(names, ", ")), "no %s is called %q", kind, name)
		}
	}
	return nil
}

// runPrograms is the command.
func runPrograms(ctx context.Context, sys System, flags *pflag.FlagSet, f *methodFlags) (err error) {
	file, err := f.adopted("programs", flags, new([]string))
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	paths, pathErr := f.paths()
	if len(f.macs) > 0 && len(f.ciphers) == 0 {
		return usageError("add --cipher", "--mac is for the ciphers of --cipher")
	}
	if err := cmp.Or(f.check(), programs.Check(f.only), named("cipher", alg.Cipher, f.ciphers), named("mac", alg.MAC, f.macs), pathErr); err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return withHint(err, "add the user to /etc/passwd: servers look it up there")
	}
	view := terminal.NewScreen(sys.Stderr, sys.Getenv)
	sys.Stderr = view
	drain, ctx, stop := interruptsSaying(ctx, view, sys, finishing)
	defer stop()
	turns := f.turns(file, view)
	environment := hostinfo.Describe(testbed.LoadLook)
	params := programs.Params{
		Only: f.only, SSH: f.ssh, SSHD: f.sshd, Ciphers: alg.NamesOf(alg.Cipher, f.ciphers), MAC: strings.Join(f.macs, ""),
		AES: slices.Contains(environment.CPUFeatures, "aesni") || slices.Contains(environment.CPUFeatures, "aes"), Random: f.data == "random", Paths: paths, Turns: turns,
	}
	dir, err := newPrivateDir(sys, inMemory)
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	spawner := proc.NewSpawner()
	defer spawner.Close()
	b := &programs.Setup{Dir: dir, Spawner: spawner, User: me.Username, Home: me.HomeDir, Helper: helper, Connect: time.Duration(f.connect)}
	if err := programs.Usable(drain, f.ssh, f.sshd); err != nil {
		return interrupted(drain, err)
	}
	if f.list {
		items := f.listing(&params.Turns)
		err := b.Measure(ctx, drain, params, func(r record.Record) error {
			if r.Finding != nil {
				fmt.Fprintf(sys.Stderr, "%s: %s\n", r.Finding.What, oneLine(r.Finding.Why))
			}
			return nil
		})
		return interrupted(drain, cmp.Or(err, printList(sys, f.json, *items)))
	}
	if file != nil {
		if err := (&testbed.Testbed{Target: testbed.Loopback, Environment: environment}).Resumes(file.Old, alg.Offer{}); err != nil {
			return err
		}
	} else if file, err = store.Of(sys.Getenv).Create(f.out, "programs"); err != nil {
		return err
	} else {
		defer file.Close()
	}
	head := f.campaign("programs", flags, testbed.Loopback, turns)
	return interrupted(drain, campaign.Methods(drain, f.output(sys, view, "programs", f.connection), file, head, &environment, func(sink record.Sink) error {
		return b.Measure(ctx, drain, params, sink)
	}))
}
