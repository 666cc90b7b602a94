//go:build linux

package cli

import (
	"cmp"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/campaign"
	"sshpace/internal/programs"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// programFlags are the flags of `sshpace programs`.
type programFlags struct {
	methodFlags

	clients, servers []programs.Build // besides the installed ones
}

func newProgramsCommand(sys System) *cobra.Command {
	var f programFlags
	noHost := func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError("leave the host out", "programs starts private servers on loopback")
		}
		return nil
	}
	cmd := f.command(sys, "programs", noHost, &f)
	flags := cmd.Flags()
	f.register(flags)
	flags.StringSliceVar(&f.only, "only", nil, "only these pairs, `CLIENT:SERVER`, such as putty:openssh,dropbear:*")
	flags.StringArrayVar(&f.names, "name", nil, "also measure the ssh or sshd at a path, under a name: `NAME=PATH`; repeatable")
	completeMeasurement(cmd, sys, &f.endFlags)
	return cmd
}

// check refuses flags that make no sense.
func (f *programFlags) check(*pflag.FlagSet, bool) error {
	_, _, err := f.turns()
	return cmp.Or(err, f.builds(), programs.Check(f.only, f.ciphers, f.macs, f.clients, f.servers))
}

// builds parses the programs to measure besides the installed ones.
func (f *programFlags) builds() error {
	for _, path := range text.NonEmpty(f.ssh) {
		f.clients = append(f.clients, programs.Build{Path: path})
	}
	for _, path := range text.NonEmpty(f.sshd) {
		f.servers = append(f.servers, programs.Build{Path: path})
	}
	for _, name := range f.names {
		build, server, err := programs.Named(name)
		if err != nil {
			return err
		}
		if server {
			f.servers = append(f.servers, build)
		} else {
			f.clients = append(f.clients, build)
		}
	}
	return nil
}

// measure pairs the installed programs, measures and reports.
func (f *programFlags) measure(sys System, m measurement) error {
	turns, paths, err := f.turns()
	if err != nil {
		return err
	}
	me, err := user.Current()
	if err != nil {
		return withHint(err, "add the user to /etc/passwd: servers look it up there")
	}
	environment := hostinfo.Describe(testbed.LoadLook)
	environment.ClientPath, environment.ServerPath = f.ssh, f.sshd // those besides the installed ones
	params := programs.Params{
		Only: f.only, SSH: f.clients, SSHD: f.servers, Ciphers: programs.NamesOf(alg.Cipher, f.ciphers), MAC: strings.Join(f.macs, ""),
		AES: slices.Contains(environment.CPUFeatures, "aesni") || slices.Contains(environment.CPUFeatures, "aes"), Random: f.data == "random", Paths: paths,
	}
	p := f.params(m, "programs", turns)
	p.Name, p.Campaign.Target, p.Environment = "programs", record.Loopback, &environment
	return withDir(sys, inMemory, func(dir *safedir.Workdir) error {
		spawner := proc.NewSpawner()
		defer spawner.Close()
		b := &programs.Setup{Site: loopback.Site{Dir: dir, Spawner: spawner, Helper: helper.Line}, User: me.Username, Home: me.HomeDir, Connect: f.limit()}
		if err := programs.Usable(m.drain, f.clients, f.servers); err != nil {
			return err
		}
		return campaign.Methods(m.drain, p, func(turns transfer.Turns, sink record.Sink) error {
			params.Turns = turns
			return b.Measure(m.hard, m.drain, params, sink)
		})
	})
}
