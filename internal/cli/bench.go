//go:build linux

package cli

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
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
keys, and installs nothing there.

On loopback all connections are open at the same time and move data in turn, a
millisecond each. On a host, what ssh uses now stays connected, and each cipher and MAC
that the policy allows is compared with it in turn: 20 seconds and 12 logins are
enough for an answer, which is better, equal, or not enough data.

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
			file, err := f.reopen(cmd.Flags(), &args)
			if err != nil {
				return err
			}
			if file != nil {
				defer file.Close()
			}
			if f.methods.asked() {
				return f.methods.run(cmd.Context(), sys, cmd.Flags(), f, file, args)
			}
			return runBench(cmd.Context(), sys, cmd, f, file, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.direction, "direction", "upload", "upload, download or both")
	flags.StringVar(&f.data, "data", "zero", "payload: zero or random")
	flags.StringArrayVar(&f.ciphers, "cipher", nil, "only these ciphers: names or globs, such as aes128-gcm,aes*-ctr; repeatable")
	flags.StringArrayVar(&f.macs, "mac", nil, "only these MACs: names or globs; repeatable")
	flags.StringArrayVar(&f.kex, "kex", nil, "only these key exchanges: names or globs; repeatable")
	flags.StringVar(&f.policy, "policy", "", "only what a security policy allows, such as modern or fips-140-3")
	flags.BoolVar(&f.all, "all", false, "with a host: compare every cipher and MAC at once, not first what the policy allows")
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
	f.methods.register(flags)
	f.connection.register(flags)
	completeBench(cmd, sys, &f)
	return cmd
}

// runBench is the command: testbed, plan, run, report.
func runBench(ctx context.Context, sys System, cmd *cobra.Command, f benchFlags, file *store.File, args []string) (err error) {
	given := cmd.Flags().Changed
	if file == nil && !given("seed") {
		f.seed = rand.Uint64N(1 << 53) // exact in every JSON reader
	}
	if err := cmp.Or(f.check(len(args) > 0), f.checkIdle(given, len(args) > 0)); err != nil {
		return err
	}
	destination, err := f.connection.destination(args)
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
	p, err := f.params(sys, view)
	if err != nil {
		return err
	}
	return interrupted(drain, withTestbed(drain, sys, safedir.WorkdirParams{}, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.Engine(f.engine), Server: record.ServerKind(f.server), Data: f.data, Connect: time.Duration(f.connect),
		Destination: destination, Route: f.connection.params(sys),
	}, func(bed *testbed.Testbed) error {
		run, err := campaign.New(ctx, bed, file, p)
		if err != nil {
			return err
		}
		if f.list {
			return run.List()
		}
		if file == nil {
			if file, err = store.Of(sys.Getenv).Create(f.out, bed.Target); err != nil {
				return err
			}
			defer file.Close()
		}
		return run.Do(ctx, drain, file)
	}))
}

// params are what the flags say of a measurement.
func (f *benchFlags) params(sys System, view *terminal.Screen) (campaign.Params, error) {
	size, err := unit.ParseBytes(f.size)
	if err != nil {
		return campaign.Params{}, usageError("such as --size 64M", "--%s", err)
	}
	c := record.Campaign{
		Tool: toolVersion(), Seed: f.seed, Directions: f.directions(), Data: f.data, Policy: f.policy,
		All: f.all, BudgetNS: time.Duration(f.budget), Precision: float64(f.precision), Rounds: f.rounds,
	}
	if f.exhaustive {
		c.BudgetNS, c.SizeBytes, c.Runs = 0, size, f.runs
	} else if f.rounds > 0 {
		c.BudgetNS = 0
	}
	return campaign.Params{
		Campaign: c, Selection: f.selection(), Connections: f.connections, Preset: len(f.ciphers) > 0 || f.policy != "", Helper: helper,
		Output: f.output(sys, view),
	}, nil
}

// output is where a measurement shows what it does.
func (f *benchFlags) output(sys System, view *terminal.Screen) campaign.Output {
	o := sys.output(f.json)
	o.Screen, o.Quiet, o.GoOn = view, f.quiet, f.goOn()
	return o
}
