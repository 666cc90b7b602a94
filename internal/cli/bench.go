//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/drive"
	"sshpace/internal/measure/hostinfo"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/plan"
	"sshpace/internal/measure/testbed"
	"sshpace/internal/measure/workload"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/format"
	"sshpace/internal/show/live"
	"sshpace/internal/sys/terminal"
	"sshpace/internal/verdict/rank"
)

func newBenchCommand(sys System) *cobra.Command {
	f := benchFlags{budget: seconds(defaultBudget), connect: seconds(15 * time.Second)}
	cmd := &cobra.Command{
		Use:   "bench [[user@]host]",
		Short: "Measure how fast OpenSSH is under every cipher and MAC, and what each key exchange costs",
		Long: `Measures the throughput and the CPU cost per byte of every cipher and MAC, and the
cost of a login with every key exchange.

Without a host it starts a private sshd on loopback for this run only, with keys of
its own, and needs no configuration. With a host it uses your own ssh, ssh_config and
keys, a few connections at a time, and installs nothing there.

All connections are open at the same time and move data in turn, a millisecond each.
Records are written to the result file as they happen. Ctrl-C ends the run and reports
what there is; a second Ctrl-C stops at once. --resume goes on with a file, tries again
what failed, and knows the host.

--mode measures what people do with SSH instead of every cipher: a pipe, scp (both
protocols), sftp, rsync, a forwarded port, a jump host, several sessions on one
connection, several connections, in short runs in random order; --rtt, --rate and
--loss lay a long path between client and private server.

--pairs measures SSH programs of several makers with each other, whichever are
installed: OpenSSH, Dropbear, TinySSH, PuTTY, curl and our own client and server.

Exit status: 0 all went well; 1 something failed, such as every transfer or the host;
2 usage; 130 or 143 after SIGINT or SIGTERM.`,
		Example: `  sshpace bench
  sshpace bench --budget 30s --cipher 'aes*' --direction both
  sshpace bench --policy ssh-audit-hardened backup@nas
  sshpace bench --list --json
  sshpace bench --exhaustive --size 64M --runs 1 --cipher aes128-ctr --kex 'curve*'
  sshpace bench --resume result.jsonl --budget 3m
  sshpace bench --mode all --cipher aes128-gcm,chacha20-poly1305 --direction both
  sshpace bench --mode scp,sftp,rsync --files 1000x10K nas
  sshpace bench --mode pipe,streams --streams 8 --rtt 50ms --rate 100MB/s
  sshpace bench --pairs all
  sshpace bench --pairs openssh:openssh --ssh /opt/ssh/bin/ssh --sshd /opt/ssh/sbin/sshd --cipher aes128-gcm
  sshpace bench --pairs 'openssh-legacy:sshpace' --cipher arcfour,3des-cbc --mac hmac-sha1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.ways.asked() {
				return f.ways.run(cmd.Context(), sys, cmd, f, args)
			}
			return runBench(cmd.Context(), sys, cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.direction, "direction", "upload", "upload, download or both")
	flags.StringVar(&f.data, "data", "zero", "payload: zero or random")
	flags.StringArrayVar(&f.ciphers, "cipher", nil, "only these ciphers: names or globs, such as aes128-gcm,aes*-ctr; repeatable")
	flags.StringArrayVar(&f.macs, "mac", nil, "only these MACs: names or globs; repeatable")
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringVar(&f.policy, "policy", "", "only what a security policy allows, such as modern or fips-140-3")
	flags.Var(&f.budget, "budget", "measuring time, such as 90s or 5m; a plain number is seconds")
	flags.Var(&f.precision, "precision", "stop earlier when all intervals are within this many percent")
	flags.IntVar(&f.rounds, "rounds", 0, "measure so many complete rounds instead of a time")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a random one)")
	flags.BoolVar(&f.exhaustive, "exhaustive", false, "copy --size bytes with every combination literally, --runs times")
	flags.StringVar(&f.size, "size", "64M", "with --exhaustive: bytes of each copy")
	flags.IntVar(&f.runs, "runs", 1, "with --exhaustive: copies of each combination")
	flags.StringVar(&f.engine, "engine", "", "client: openssh, or native for the built-in one (default: openssh where there is an ssh)")
	flags.StringVar(&f.server, "server", "", "private server: openssh, or native for the built-in one (default: openssh where there is an sshd)")
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.Var(&f.connect, "connect-timeout", "how long a connection may take, and a transfer stand still")
	flags.BoolVar(&f.list, "list", false, "print what would be measured, and measure nothing")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.json, "json", false, "print the report, or with --list the plan, as JSON")
	flags.StringVar(&f.out, "out", "", "result file (default: a new one in the state folder)")
	flags.StringVar(&f.resume, "resume", "", "go on with this result file")
	flags.IntVar(&f.connections, "connections", 0, "connections that may be open at a time (default: what memory and file limits allow)")
	f.ways.register(flags)
	f.connection.register(flags)
	completeBench(cmd, sys, &f)
	return cmd
}

// runBench is the command: testbed, plan, run, report.
func runBench(ctx context.Context, sys System, cmd *cobra.Command, f benchFlags, args []string) (err error) {
	given := cmd.Flags().Changed
	var file *store.File
	if f.resume != "" {
		if file, err = f.reopen(given, &args); err != nil {
			return err
		}
		defer file.Close()
	} else if !given("seed") {
		f.seed = rand.Uint64N(1 << 53) // exact in every JSON reader
	}
	if err := cmp.Or(f.check(len(args) > 0), f.checkIdle(given, len(args) > 0)); err != nil {
		return err
	}
	destination, err := f.destination(args)
	if err != nil {
		return err
	}
	view := terminal.NewScreen(sys.Stderr, sys.Getenv)
	sys.Stderr = view
	drain, ctx, stop := interruptsSaying(ctx, view, sys, finishing)
	defer stop()
	// A reader that is gone, as of `2>&1 | head`, must not kill a measurement: with
	// the signal caught, writing to it is an error (os/signal).
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	dir, err := privateDir(sys)
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	bed, err := testbed.Open(ctx, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.Engine(f.engine), Server: record.ServerKind(f.server), Data: f.data, Connect: time.Duration(f.connect),
		Destination: destination, Route: f.connection.params(sys), Dir: dir, Helper: helper,
	})
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, bed.Close()) }()
	job, err := f.job(ctx, bed, file)
	if err != nil {
		return err
	}
	if f.list {
		return job.list(sys, f.json)
	}
	if file == nil {
		if file, err = store.Of(sys.Getenv).Create(f.out, bed.Target); err != nil {
			return err
		}
		defer file.Close()
	}
	return job.run(ctx, drain, sys, view, file, &f)
}

// job is everything that a run needs, checked.
type job struct {
	bed      *testbed.Testbed
	campaign record.Campaign
	plan     plan.Plan
	goOn     string // command line that resumes a file, but for its name
}

// job makes the plan. A resumed file brings its own offer.
func (f *benchFlags) job(ctx context.Context, bed *testbed.Testbed, file *store.File) (*job, error) {
	offer, err := bed.Shared()
	shared := offer
	if err != nil {
		return nil, err
	}
	if file != nil {
		if err := bed.Resumes(file.Old, offer); err != nil {
			return nil, err
		}
		offer = file.Old.Campaign.Offer
	} else if offer, err = f.selection().Apply(offer, bed.Client, bed.Offered); err != nil {
		return nil, err
	}
	size, err := unit.ParseBytes(f.size)
	if err != nil {
		return nil, usageError("such as --size 64M", "--%s", err)
	}
	c := record.Campaign{
		Format: record.FormatVersion, Tool: toolVersion(), Started: time.Now().UTC(), Seed: f.seed, Target: bed.Target,
		Engine: bed.Engine, Server: bed.Server, Directions: f.directions(), Data: f.data, Policy: f.policy,
		BudgetNS: time.Duration(f.budget), Precision: float64(f.precision), Rounds: f.rounds, Offer: offer, Shared: shared, Combos: alg.Fold(offer).Combinations(),
		Present: bed.Present(ctx),
	}
	if f.exhaustive {
		c.BudgetNS, c.SizeBytes, c.Runs = 0, size, f.runs
	} else if f.rounds > 0 {
		c.BudgetNS = 0
	}
	capacity := bed.Driver.Capacity()
	if f.connections > 0 {
		capacity = min(capacity, f.connections)
	}
	p, err := plan.New(c, plan.Environment{Cores: bed.Environment.Cores, Capacity: capacity})
	if err != nil {
		return nil, usageError("allow more algorithms", "%s", err)
	}
	return &job{bed, c, p, f.goOn()}, nil
}

// run carries the job out, writes the records and reports.
func (j *job) run(ctx context.Context, drain context.Context, sys System, screen *terminal.Screen, out *store.File, f *benchFlags) error {
	memory := &record.File{Trials: map[int]record.Trial{}}
	view := live.New(live.Params{
		Screen: screen, Quiet: f.quiet, Progress: j.plan.Progress, Load: hostinfo.Load, File: memory, Now: time.Now,
	})
	sink := record.Tee(record.Write(out), memory.Sink(), view.Sink)
	params := lab.Params{Target: j.bed.Target, Drain: drain}
	if out.Old != nil {
		j.replay(out.Old, memory, &params)
	} else if err := j.begin(sink); err != nil {
		return j.writeError(err, out.Name())
	}
	trials := len(memory.Trials)
	runErr := lab.Run(ctx, params, j.plan, j.bed.Driver, sink)
	_ = screen.Draw()
	if runErr == nil && drain.Err() == nil {
		runErr = j.limits(ctx, sink, f)
	}
	ending, reportable := j.ending(drain, runErr)
	if !reportable {
		fmt.Fprintf(sys.Stderr, "the records so far are in %s\n", out.Name())
		return j.writeError(runErr, out.Name())
	}
	if len(memory.Trials) == trials && drain.Err() == nil && runErr == nil {
		fmt.Fprintln(sys.Stderr, nothingLeft[ending])
	}
	if err := cmp.Or(sink(ending.Record()), out.Sync()); err != nil {
		return j.writeError(err, out.Name())
	}
	return j.report(sys, memory, out.Name(), f.json, drain, runErr)
}

// limitBudget is how long a run must be for a look at what limits it: that takes
// some seconds.
const limitBudget = 10 * time.Second

// limits looks for what limits a transfer, with the cipher that ssh takes by
// itself or the first of those that were asked for.
func (j *job) limits(ctx context.Context, sink record.Sink, f *benchFlags) error {
	if j.bed.Engine != record.EngineOpenSSH || j.bed.Server == record.ServerNative || j.campaign.BudgetNS < limitBudget || len(j.campaign.Offer.Ciphers) == 0 {
		return nil
	}
	var suite alg.Suite
	if len(f.ciphers) > 0 || f.policy != "" {
		suite = alg.Fold(j.campaign.Offer).Bulk[0]
	}
	ground := workload.Look(j.bed, j.bed.Rig.Dir.Path, helper)
	return ground.Limits(ctx, workload.Options{Suite: suite}, j.campaign.Directions, sink)
}

// nothingLeft says why a run made no trial.
var nothingLeft = map[plan.Ending]string{
	plan.EndBudget:    "nothing left to do: a longer --budget goes on",
	plan.EndPrecision: "nothing left to do: a smaller --precision goes on",
	plan.EndComplete:  "nothing left to do: all of it has been measured",
	plan.EndFailures:  "nothing left to do",
}

// ending is why the run ended. What was measured can be reported, unless the
// lab itself broke.
func (j *job) ending(drain context.Context, runErr error) (ending plan.Ending, reportable bool) {
	_, gaveUp := errors.AsType[*drive.HostError](runErr)
	switch {
	case drain.Err() != nil, errors.Is(runErr, live.ErrUnwatched):
		return plan.EndInterrupted, true
	case gaveUp:
		return plan.EndFailures, true
	}
	return j.plan.End(), runErr == nil
}

// begin writes the head of a new file.
func (j *job) begin(sink record.Sink) error {
	records := []record.Record{{Campaign: &j.campaign}, {Environment: &j.bed.Environment}}
	for _, finding := range append(j.bed.Findings, j.bed.OneSided()...) {
		records = append(records, record.Record{Finding: &finding})
	}
	for _, r := range records {
		if err := sink(r); err != nil {
			return err
		}
	}
	return nil
}

// replay teaches the plan what a resumed file holds.
func (j *job) replay(old, memory *record.File, params *lab.Params) {
	*memory = *old
	params.Elapsed = old.Measured()
	j.plan.Replay(old)
}

// report prints the ranking to stdout and where the records are to stderr.
// Whatever kept the run from its end is the error that is left.
func (j *job) report(sys System, f *record.File, name string, asJSON bool, drain context.Context, runErr error) error {
	if runErr = j.shortfall(runErr, name); drain.Err() != nil {
		runErr = nil
	}
	ranking, err := rank.Of(f, rank.Options{})
	if errors.Is(err, rank.ErrNoSamples) && drain.Err() != nil {
		fmt.Fprintf(sys.Stderr, "nothing was measured yet; go on with: %s%s\n", j.goOn, name)
		return interrupted(drain, nil)
	}
	if err != nil {
		return cmp.Or(runErr, withHint(fmt.Errorf("%s: %w", name, err), "allow more time or look at the failures; go on with: "+j.goOn+name))
	}
	newest, _ := store.Of(sys.Getenv).Newest()
	x := &format.Ranking{Ranking: ranking, Records: f, Options: document.Options{Here: true, File: name, Advise: adviseLine(name, newest, "modern")}}
	shown := format.Format{Name: "text"}
	if asJSON {
		shown.Name = "json"
	}
	if err := x.Render(sys.Stdout, shown); err != nil {
		return err
	}
	fmt.Fprintf(sys.Stderr, "saved: %s\n", name)
	return interrupted(drain, runErr)
}

// shortfall explains why a run did not measure what it was to measure, if it
// did not.
func (j *job) shortfall(runErr error, name string) error {
	goOn := "go on with: " + j.goOn + name
	if _, gaveUp := errors.AsType[*drive.HostError](runErr); gaveUp {
		err := j.bed.Explain(runErr)
		return withHint(err, hintOf(err)+"; then "+goOn)
	}
	if runErr != nil {
		return runErr
	}
	if workload, barren := j.plan.Barren(); barren {
		return &Error{What: fmt.Sprintf("not a single %s worked", workload), Hint: "look at the failures; " + goOn}
	}
	if j.plan.End() == plan.EndFailures {
		return &Error{What: "given up: too many trials failed in a row", Hint: "look at the failures; " + goOn}
	}
	return nil
}

// writeError explains why a run broke off and what can be done about it.
func (j *job) writeError(err error, name string) error {
	if isNoSpace(err) || errors.Is(err, os.ErrClosed) {
		return withHint(err, "make room, then go on with: "+j.goOn+name)
	}
	return j.bed.Explain(err)
}
