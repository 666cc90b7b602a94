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

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/login"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// loginFlags are the flags of the commands that take logins apart.
type loginFlags struct {
	connection connectionFlags
	ssh, sshd  string
	connect    seconds
	json       bool
}

func (f *loginFlags) register(cmd *cobra.Command) {
	f.connect = seconds(10 * time.Second)
	flags := cmd.Flags()
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.Var(&f.connect, "connect-timeout", "how long connecting may take; a login as a whole, three times that")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	f.connection.register(flags)
}

// handshakeFlags are the flags of `sshpace handshake`.
type handshakeFlags struct {
	loginFlags
	kex     []string
	factors []string
	full    bool
	engine  string
	out     string
	resume  string
	runs    int
	budget  seconds
	seed    uint64
}

func newHandshakeCommand(sys System) *cobra.Command {
	f := handshakeFlags{budget: seconds(time.Minute)}
	cmd := &cobra.Command{
		Use:   "handshake [[user@]host]",
		Short: "Take a login apart: phases, round trips, stalls, CPU time, key exchanges",
		Long: `Logs in with the real ssh, many times, and shows how long each phase takes, from
the start of the program to its end. Without a host the server is a private sshd on
loopback: then packets are stamped, too, so that round trips are counted and waits that
nobody needs are found, and logins that differ in one thing are compared, in turns: key
exchanges (kex), host keys (hostkey), user keys (userkey), keys in files and agents
(agent), known_hosts, ssh_config (config), sshd_config (server), a session over a
ControlMaster (connection), and sshpace's own client (client).

A host gets at most one login a second, and no other after one that it refuses; with it
--factor compares kex, connection and client.`,
		Example: `  sshpace handshake
  sshpace handshake --factor kex --kex 'mlkem*,curve25519-sha256' --runs 20
  sshpace handshake --full --budget 10m
  sshpace handshake --resume kex.jsonl --budget 5m
  sshpace handshake --json user@host`,
		Args: oneHostAtMost,
		RunE: func(cmd *cobra.Command, args []string) error {
			return runHandshake(cmd.Context(), sys, &f, cmd.Flags().Changed, args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringSliceVar(&f.factors, "factor", nil, "compare only these: "+strings.Join(login.FactorNames(), ", ")+"; none for the plain login alone")
	flags.BoolVar(&f.full, "full", false, "every key exchange with every host key and every user key")
	flags.StringVar(&f.engine, "engine", "ssh", "whose logins: ssh, or native for those of sshpace run")
	flags.StringVar(&f.out, "out", "", "file for the records (default: one in the results folder)")
	flags.StringVar(&f.resume, "resume", "", "go on with this result, which was interrupted or is to become more precise")
	flags.IntVar(&f.runs, "runs", 0, "how often each kind of login is measured, instead of --budget (default 5 with a host)")
	flags.Var(&f.budget, "budget", "how long to measure (default 1m on the private server)")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the order of logins (default random)")
	f.register(cmd)
	return cmd
}

func runHandshake(ctx context.Context, sys System, f *handshakeFlags, given func(string) bool, args []string) error {
	if f.engine != "ssh" && f.engine != "native" {
		return usageError("use ssh or native", "--engine %q", f.engine)
	}
	p := campaign.LoginParams{
		Native: f.engine == "native", Kex: f.kex, Factors: f.factors, Full: f.full,
		Plan:   login.Plan{Rounds: f.runs, Budget: time.Duration(f.budget), Seed: cmp.Or(f.seed, rand.Uint64N(1<<53))},
		Chosen: given("budget"), Tool: toolVersion(), Out: f.out, Output: sys.output(f.json),
	}
	p.GoOn = "sshpace handshake " + shell.Line(append(f.connection.Options(), "--resume")...) + " "
	if err := p.Check(p.Chosen); err != nil {
		return err
	}
	if f.resume != "" {
		if err := p.Reopen(f.resume, given); err != nil {
			return err
		}
		defer p.File.Close()
	}
	target := p.Target(args)
	if len(target) > 0 {
		if err := p.CheckHost(); err != nil {
			return err
		}
	}
	destination, err := f.connection.destination(target)
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
