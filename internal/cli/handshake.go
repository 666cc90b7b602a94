//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/handshake"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/show/login"
	"sshpace/internal/ssh/openssh"
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
	flags.Var(&f.connect, "connect-timeout", "how long a login may take")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	f.connection.register(flags)
}

// handshakeFlags are the flags of `sshpace handshake`.
type handshakeFlags struct {
	loginFlags
	kex  []string
	runs int
}

func newHandshakeCommand(sys System) *cobra.Command {
	var f handshakeFlags
	cmd := &cobra.Command{
		Use:   "handshake [[user@]host]",
		Short: "Take a login apart: phases, round trips, stalls, CPU time, key exchanges",
		Long: `Logs in with the real ssh, several times, and shows how long each phase takes, from
the start of the program to its end. Without a host the server is a private sshd on
loopback: then packets are stamped, too, so that round trips are counted and waits that
nobody needs are found, and each key exchange and a session over a ControlMaster are
compared with the plain login.

A host gets at most one login a second, and no other after one that it refuses.`,
		Example: `  sshpace handshake
  sshpace handshake --kex 'mlkem*,curve25519-sha256' --runs 20
  sshpace handshake --json user@host`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runHandshake(cmd.Context(), sys, f, args) },
	}
	cmd.Flags().StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	cmd.Flags().IntVar(&f.runs, "runs", 5, "how often each kind of login is measured")
	f.register(cmd)
	return cmd
}

func runHandshake(ctx context.Context, sys System, f handshakeFlags, args []string) error {
	if f.runs < 1 {
		return usageError("1 or more", "--runs %d", f.runs)
	}
	return f.withEnds(ctx, sys, args, func(ctx context.Context, bed *testbed.Testbed, e *handshake.Ends) error {
		kex, err := f.kexNames(bed)
		if err != nil {
			return err
		}
		cases, pause := append([]handshake.Case{e.Plain()}, e.KexCases(kex)...), hostPause
		if e.Own() {
			pause = 0
			master, err := e.StartMaster(ctx)
			if err != nil {
				return err
			}
			defer master.Close()
			cases = append(cases, e.SessionCase(master))
		}
		fmt.Fprintf(sys.Stderr, "%d logins of %d kinds\n", len(cases)*f.runs, len(cases))
		results, err := e.Survey(ctx, cases, f.runs, pause)
		if err != nil {
			return loginFailed(err, bed.Target)
		}
		trips, err := e.RoundTrips(ctx)
		if err != nil {
			return loginFailed(err, bed.Target)
		}
		r := &login.Report{Schema: login.Schema, Target: bed.Target, Client: bed.Environment.Client, Server: bed.Environment.Server, Results: results, RoundTrips: trips}
		if trips > 0 {
			r.Predicted = results[0].Predict(trips)
		}
		if f.json {
			return r.JSON(sys.Stdout)
		}
		return r.Text(sys.Stdout)
	})
}

// hostPause is the time between two logins to a host of the user's.
const hostPause = time.Second

// kexNames are the key exchanges to compare: of a host, only those that are
// asked for.
func (f handshakeFlags) kexNames(bed *testbed.Testbed) ([]string, error) {
	if len(f.kex) == 0 && bed.Server == record.ServerRemote {
		return nil, nil
	}
	offer, err := bed.Shared()
	if err != nil || len(f.kex) == 0 {
		return offer.Kex, err
	}
	patterns := f.patterns()
	names := slices.DeleteFunc(slices.Clone(offer.Kex), func(name string) bool { return !alg.Match(patterns, name) })
	if len(names) == 0 {
		return nil, usageError("there are "+strings.Join(offer.Kex, ", "), "no key exchange is called %s", strings.Join(f.kex, ","))
	}
	return names, nil
}

func (f handshakeFlags) patterns() (all []string) {
	for _, text := range f.kex {
		all = append(all, strings.Split(text, ",")...)
	}
	return all
}

// withEnds makes two ends ready and has use do its work on them.
func (f *loginFlags) withEnds(ctx context.Context, sys System, args []string, use func(context.Context, *testbed.Testbed, *handshake.Ends) error) (err error) {
	destination, err := f.destination(args)
	if err != nil {
		return err
	}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	ctx = either(ctx, drain)
	dir, err := privateDir(sys)
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	bed, err := testbed.Open(ctx, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.EngineOpenSSH, Data: "zero", Connect: time.Duration(f.connect),
		Destination: destination, Route: f.connection.params(sys), Dir: dir, Helper: helper,
	})
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	ends, err := handshake.Between(bed, time.Duration(f.connect), dir.Path)
	if err != nil {
		return withHint(err, "install openssh-client, or name its path with --ssh")
	}
	defer func() { err = errors.Join(err, ends.Close()) }()
	return interrupted(drain, use(ctx, bed, ends))
}

func (f *loginFlags) destination(args []string) (openssh.Destination, error) {
	b := benchFlags{connection: f.connection}
	return b.destination(args)
}

// loginFailed words a login that failed.
func loginFailed(err error, target string) error {
	var failed *handshake.FailedError
	if !errors.As(err, &failed) {
		return err
	}
	return withHint(fmt.Errorf("%s: %s", target, oneLine(failed.Error())), cmp.Or(hintOf(err), "nothing more was tried; see what ssh says: ssh -v "+target))
}
