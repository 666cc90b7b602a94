//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/near"
	"sshpace/internal/measure/handshake"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
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
	kex     []string
	factors []string
	full    bool
	engine  string
	out     string
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
  sshpace handshake --json user@host`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runHandshake(cmd.Context(), sys, &f, cmd.Flags().Changed("budget"), args)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringSliceVar(&f.factors, "factor", nil, "compare only these: "+strings.Join(handshake.FactorNames(), ", ")+"; none for the plain login alone")
	flags.BoolVar(&f.full, "full", false, "every key exchange with every host key and every user key")
	flags.StringVar(&f.engine, "engine", "ssh", "whose logins: ssh, or native for those of sshpace run")
	flags.StringVar(&f.out, "out", "", "file for the records (default: one in the results folder)")
	flags.IntVar(&f.runs, "runs", 0, "how often each kind of login is measured, instead of --budget (default 5 with a host)")
	flags.Var(&f.budget, "budget", "how long to measure (default 1m on the private server)")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the order of logins (default random)")
	f.register(cmd)
	return cmd
}

// check refuses flags that contradict each other.
func (f *handshakeFlags) check(budget bool) error {
	switch {
	case f.runs < 0:
		return usageError("1 or more", "--runs %d", f.runs)
	case f.runs > 0 && budget:
		return usageError("choose one of them", "--runs and --budget exclude each other")
	case f.engine != "ssh" && f.engine != "native":
		return usageError("use ssh or native", "--engine %q", f.engine)
	case f.full && len(f.factors) > 0:
		return usageError("choose one of them", "--full and --factor exclude each other")
	}
	for _, name := range f.factors {
		if name != "none" && !slices.Contains(handshake.FactorNames(), name) {
			return usageError(near.Hint("", name, handshake.FactorNames(), "use "+strings.Join(handshake.FactorNames(), ", ")), "--factor %q", name)
		}
	}
	return nil
}

func runHandshake(ctx context.Context, sys System, f *handshakeFlags, budget bool, args []string) error {
	if err := f.check(budget); err != nil {
		return err
	}
	return f.withEnds(ctx, sys, args, func(ctx context.Context, bed *testbed.Testbed, e *handshake.Ends) error {
		study, err := f.study(bed, e)
		if err != nil {
			return err
		}
		defer study.Close()
		cases, err := study.Cases(ctx)
		if err != nil {
			return err
		}
		return f.measure(ctx, sys, bed, study, cases, f.plan(e.Own(), budget))
	})
}

// measure carries out the logins, records them, and reports what there is.
func (f *handshakeFlags) measure(ctx context.Context, sys System, bed *testbed.Testbed, study *handshake.Study, cases []handshake.Case, plan handshake.Plan) error {
	var err error
	if plan.RoundTrips, err = study.Ends.RoundTrips(ctx); err != nil {
		return loginFailed(err, bed.Target)
	}
	file, err := store.Of(sys.Getenv).Create(f.out, bed.Target)
	if err != nil {
		return err
	}
	defer file.Close()
	memory := &record.File{Trials: map[int]record.Trial{}}
	plan.Note = record.Tee(record.Write(file), memory.Sink())
	if err := cmp.Or(plan.Note(record.Record{Campaign: f.campaign(bed, plan)}), plan.Note(record.Record{Environment: &bed.Environment})); err != nil {
		return err
	}
	plan.Conditions = study.Conditions()
	fmt.Fprintf(sys.Stderr, "%d kinds of logins, %s\n", len(cases), duration(plan, len(cases)))
	_, err = study.Ends.Survey(ctx, cases, plan)
	why := "complete"
	if errors.Is(err, context.Canceled) {
		why = "interrupted"
	}
	if ended := cmp.Or(plan.Note(record.Record{End: &record.End{Why: why}}), file.Sync()); ended != nil {
		return ended
	}
	if err != nil && (why == "complete" || len(memory.LoginRuns) == 0 || !slices.ContainsFunc(memory.LoginRuns, func(l record.WatchedLogin) bool { return l.Kind == 1 })) {
		return loginFailed(err, bed.Target)
	}
	shown := format.Format{Name: "text"}
	if f.json {
		shown.Name = "json"
	}
	if err := (&format.Logins{Records: memory}).Render(sys.Stdout, shown); err != nil {
		return err
	}
	fmt.Fprintf(sys.Stderr, "\nsaved: %s\nlook again: sshpace report %s\n", file.Name(), file.Name())
	return err
}

// campaign says what was measured.
func (f *handshakeFlags) campaign(bed *testbed.Testbed, p handshake.Plan) *record.Campaign {
	c := &record.Campaign{
		Format: record.FormatVersion, Tool: Version, Started: time.Now(), Seed: p.Seed, Target: bed.Target, Engine: record.EngineOpenSSH, Server: bed.Server,
		BudgetNS: p.Budget, Rounds: p.Rounds,
	}
	if f.engine == "native" {
		c.Engine = record.EngineNative
	}
	return c
}

// plan is how often logins are made. A host of the user's gets few.
func (f *handshakeFlags) plan(own, budget bool) handshake.Plan {
	p := handshake.Plan{Rounds: f.runs, Budget: time.Duration(f.budget), Seed: cmp.Or(f.seed, rand.Uint64())}
	if own {
		return p
	}
	const few = 5
	if p.Pause, p.Strict = hostPause, true; f.runs == 0 && !budget {
		p.Rounds = few
	}
	return p
}

// duration says how long a survey takes.
func duration(p handshake.Plan, cases int) string {
	if p.Rounds == 0 {
		return p.Budget.String()
	}
	return fmt.Sprintf("%d logins", cases*p.Rounds)
}

// study is what is to be compared.
func (f *handshakeFlags) study(bed *testbed.Testbed, e *handshake.Ends) (*handshake.Study, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if f.engine == "native" {
		e.Native = program
	}
	s := &handshake.Study{Bed: bed, Ends: e, Program: program, Factors: f.factors, Full: f.full}
	s.Kex, err = f.kexNames(bed)
	return s, err
}

// kexNames are the key exchanges to compare: of a host, only those that are
// asked for.
func (f *handshakeFlags) kexNames(bed *testbed.Testbed) ([]string, error) {
	if len(f.kex) == 0 && bed.Server == record.ServerRemote && !slices.Contains(f.factors, "kex") {
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

func (f *handshakeFlags) patterns() (all []string) {
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
