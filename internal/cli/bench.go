package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/lab"
	"sshpace/internal/openssh"
	"sshpace/internal/plan"
	"sshpace/internal/rank"
	"sshpace/internal/report"
	"sshpace/internal/unit"
)

// benchFlags are the flags of `sshpace bench`.
type benchFlags struct {
	direction, data, engine, server string
	ssh, sshd                       string
	ciphers, macs, kex              []string
	policy                          string
	budget, connect                 time.Duration
	precision                       float64
	rounds, runs                    int
	seed                            uint64
	exhaustive, list, json          bool
	size                            string
	out, resume                     string
	connection                      connectionFlags
}

const defaultBudget = 60 * time.Second

func newBenchCommand(sys System) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [[user@]host]",
		Short: "Measure how fast OpenSSH is under every cipher and MAC, and what each key exchange costs",
		Long: `Measures the throughput and the CPU cost per byte of every cipher and MAC, and the
cost of a login with every key exchange.

Without a host it starts a private sshd on loopback for this run only, with keys of
its own, and needs no configuration. With a host it uses your own ssh, ssh_config and
keys, one connection at a time, and installs nothing there.

Every trial is written to the result file as it happens. Ctrl-C finishes the trial
that is running and reports what there is; a second Ctrl-C stops at once.`,
		Example: `  sshpace bench
  sshpace bench --budget 30s --cipher 'aes*' --direction both
  sshpace bench --policy ssh-audit-hardened backup@nas
  sshpace bench --list
  sshpace bench --exhaustive --size 64M --runs 1 --cipher aes128-ctr --kex 'curve*'
  sshpace bench --resume result.jsonl --budget 3m`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBench(cmd.Context(), sys, cmd, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.direction, "direction", "upload", "upload, download or both")
	flags.StringVar(&f.data, "data", "zero", "payload: zero or random")
	flags.StringArrayVar(&f.ciphers, "cipher", nil, "only this cipher; a name or a glob; repeatable")
	flags.StringArrayVar(&f.macs, "mac", nil, "only this MAC; a name or a glob; repeatable")
	flags.StringArrayVar(&f.kex, "kex", nil, "only this key exchange; a name or a glob; repeatable")
	flags.StringVar(&f.policy, "policy", "", "only what a security policy allows, such as modern or fips-140-3")
	flags.DurationVar(&f.budget, "budget", defaultBudget, "measuring time")
	flags.Float64Var(&f.precision, "precision", 0, "stop earlier when all intervals are within this many percent")
	flags.IntVar(&f.rounds, "rounds", 0, "measure so many complete blocks instead of a time")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the random order (default: a random one)")
	flags.BoolVar(&f.exhaustive, "exhaustive", false, "copy --size bytes with every combination literally, --runs times")
	flags.StringVar(&f.size, "size", "64M", "with --exhaustive: bytes of each copy")
	flags.IntVar(&f.runs, "runs", 1, "with --exhaustive: copies of each combination")
	flags.StringVar(&f.engine, "engine", "openssh", "client: openssh, or native for the built-in one")
	flags.StringVar(&f.server, "server", "", "private server: openssh, or native for the built-in one (default: openssh where there is an sshd)")
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.DurationVar(&f.connect, "connect-timeout", 15*time.Second, "how long a connection may take, and a transfer stand still")
	flags.BoolVar(&f.list, "list", false, "print what would be measured, and measure nothing")
	flags.BoolVar(&f.json, "json", false, "print the report as JSON")
	flags.StringVar(&f.out, "out", "", "result file (default: a new one in the state folder)")
	flags.StringVar(&f.resume, "resume", "", "go on with this result file")
	f.connection.register(flags)
	return cmd
}

// choices are flags with a fixed set of values.
var choices = []struct {
	flag   string
	value  func(f *benchFlags) string
	values []string
}{
	{"direction", func(f *benchFlags) string { return f.direction }, []string{"upload", "download", "both"}},
	{"data", func(f *benchFlags) string { return f.data }, []string{"zero", "random"}},
	{"engine", func(f *benchFlags) string { return f.engine }, []string{"openssh", "native"}},
	{"server", func(f *benchFlags) string { return f.server }, []string{"", "openssh", "native"}},
}

// check finds flags that make no sense, alone or together.
func (f *benchFlags) check(hostGiven bool) error {
	for _, c := range choices {
		if !slices.Contains(c.values, c.value(f)) {
			return usageError(fmt.Sprintf("use one of %v", c.values), "--%s %q", c.flag, c.value(f))
		}
	}
	switch {
	case f.budget <= 0 || f.connect <= 0:
		return usageError("such as 90s or 5m", "--budget and --connect-timeout must be longer than nothing")
	case f.rounds < 0 || f.runs < 1 || !(f.precision >= 0) || math.IsInf(f.precision, 0):
		return usageError("see sshpace bench --help", "--rounds, --runs and --precision must be positive")
	case hostGiven && (f.engine == "native" || f.server != ""):
		return usageError("leave them out, or leave the host out", "--engine native and --server are for the private server on loopback")
	case hostGiven && f.exhaustive:
		return usageError("leave the host out to measure on loopback", "--exhaustive would make thousands of logins on %s", "a host of yours")
	case f.out != "" && f.resume != "":
		return usageError("--resume appends to its own file", "--out and --resume exclude each other")
	}
	return nil
}

func (f *benchFlags) directions() []bench.Direction {
	if f.direction == "both" {
		return []bench.Direction{bench.Upload, bench.Download}
	}
	return []bench.Direction{bench.Direction(f.direction)}
}

func (f *benchFlags) selection() selection {
	return selection{map[alg.Kind][]string{alg.Cipher: f.ciphers, alg.MAC: f.macs, alg.Kex: f.kex}, f.policy}
}

// runBench is the command: station, plan, run, report.
func runBench(ctx context.Context, sys System, cmd *cobra.Command, f benchFlags, args []string) (err error) {
	if err := f.check(len(args) > 0); err != nil {
		return err
	}
	destination, err := f.destination(args)
	if err != nil {
		return err
	}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	var file *recordFile
	if f.resume != "" {
		if file, err = resumeRecordFile(f.resume); err != nil {
			return err
		}
		defer file.Close()
		if err := f.adopt(cmd.Flags().Changed, file.old.Campaign, len(args) > 0); err != nil {
			return err
		}
	}
	s, err := openStation(ctx, sys, stationParams{f.ssh, f.sshd, f.engine, f.server, f.data, f.connect, destination})
	if err != nil {
		return interrupted(drain, err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	job, err := f.job(s, file)
	if err != nil {
		return err
	}
	if f.list {
		return job.list(sys)
	}
	if file == nil {
		if file, err = createRecordFile(f.out, s.target); err != nil {
			return err
		}
		defer file.Close()
	}
	return job.run(ctx, drain, sys, file, f.json)
}

// destination is the host to measure; none for the private server.
func (f *benchFlags) destination(args []string) (openssh.Destination, error) {
	if len(args) == 0 {
		if options := f.connection.options(); len(options) > 0 {
			return openssh.Destination{}, usageError("name the host, such as sshpace bench user@host", "connection options without a host")
		}
		return openssh.Destination{}, nil
	}
	return parseDestination(args[0], f.connection)
}

// fixed are the flags that a resumed run has from its file.
var fixed = []string{"direction", "data", "engine", "server", "cipher", "mac", "kex", "policy", "seed", "exhaustive", "size", "runs"}

// adopt takes from a file that is resumed what must stay as it was. The file
// may be anybody's: what it says passes the same checks as the flags.
func (f *benchFlags) adopt(changed func(flag string) bool, c bench.Campaign, hostGiven bool) error {
	for _, name := range fixed {
		if changed(name) {
			return usageError("leave it out: a resumed run keeps its plan; only --budget, --rounds and --precision may change", "--%s with --resume", name)
		}
	}
	if c.Imported != "" {
		return usageError("start a new result", "%s was imported from a log of %s", f.resume, c.Imported)
	}
	if private := c.Target == "loopback"; private == hostGiven {
		return usageError("measure the same target", "%s was measured on %q", f.resume, c.Target)
	}
	f.engine, f.data, f.seed, f.policy = c.Engine, c.Data, c.Seed, c.Policy
	if c.Server != "remote" {
		f.server = c.Server
	}
	f.direction = ""
	if len(c.Directions) > 0 {
		f.direction = string(c.Directions[0])
	}
	if len(c.Directions) > 1 {
		f.direction = "both"
	}
	f.exhaustive, f.runs = c.SizeBytes > 0, max(1, c.Runs)
	f.size = fmt.Sprint(int64(max(1, c.SizeBytes)))
	f.adoptEnd(changed, c)
	if err := f.check(hostGiven); err != nil {
		return &Error{What: fmt.Sprintf("%s cannot be gone on with: %s", f.resume, err), Hint: "start a new result", Code: ExitUsage}
	}
	return nil
}

// adoptEnd takes over when the run is to end, unless the user says it anew:
// blocks or time, whichever flag was given now, else as the file has it.
func (f *benchFlags) adoptEnd(changed func(flag string) bool, c bench.Campaign) {
	if !changed("rounds") && !changed("budget") {
		f.rounds = c.Rounds
	}
	if !changed("budget") && c.BudgetNS > 0 {
		f.budget = c.BudgetNS
	}
	if !changed("precision") {
		f.precision = c.Precision
	}
}

// job is everything that a run needs, checked.
type job struct {
	station  *station
	campaign bench.Campaign
	plan     *plan.Plan
	space    alg.Space
}

// job makes the plan. A resumed file brings its own offer.
func (f *benchFlags) job(s *station, file *recordFile) (*job, error) {
	offer, err := s.shared()
	shared := offer
	if err != nil {
		return nil, err
	}
	if file != nil {
		if err := sameStation(file.old, s, offer); err != nil {
			return nil, err
		}
		offer = file.old.Campaign.Offer
	} else if offer, err = f.selection().apply(offer, s.client, s.remote); err != nil {
		return nil, err
	}
	size, err := unit.ParseBytes(f.size)
	if err != nil {
		return nil, usageError("such as --size 64M", "--%s", err)
	}
	seed := f.seed
	if seed == 0 {
		seed = rand.Uint64N(1 << 53) // exact in every JSON reader
	}
	spec := plan.Spec{
		Space: alg.Fold(offer), Directions: f.directions(), Seed: seed,
		Budget: f.budget, Precision: f.precision, Rounds: f.rounds, Cores: s.environment.Cores,
	}
	spec.Overhead = s.server != "remote"
	if s.server == "remote" {
		spec.SegmentNS, spec.Segments = 200*time.Millisecond, 3
	}
	c := bench.Campaign{
		Format: bench.FormatVersion, Tool: toolVersion(), Started: time.Now().UTC(), Seed: seed, Target: s.target,
		Engine: s.engine, Server: s.server, Directions: spec.Directions, Data: f.data, Policy: f.policy,
		BudgetNS: f.budget, Precision: f.precision, Rounds: f.rounds, Offer: offer, Shared: shared, Combos: spec.Space.Combinations(),
	}
	design := plan.Sequential
	if f.exhaustive {
		design = plan.Exhaustive
		spec.Budget, spec.SizeBytes, spec.Runs = 0, size, f.runs
		c.BudgetNS, c.SizeBytes, c.Runs = 0, size, f.runs
	} else if f.rounds > 0 {
		design = plan.Blocks
		spec.Budget, c.BudgetNS = 0, 0
	}
	p, err := design(spec)
	if err != nil {
		return nil, usageError("allow more algorithms", "%s", err)
	}
	return &job{s, c, p, spec.Space}, nil
}

// sameStation refuses to mix what must not be averaged.
func sameStation(old *bench.File, s *station, offer alg.Offer) error {
	for _, pair := range [][3]string{
		{"target", old.Campaign.Target, s.target}, {"server", old.Campaign.Server, s.server},
		{"client version", old.Environment.Client, s.environment.Client}, {"server version", old.Environment.Server, s.environment.Server},
		{"CPU", old.Environment.CPU, s.environment.CPU},
	} {
		if pair[1] != pair[2] {
			return usageError("start a new result and compare the two: sshpace compare", "the file was measured with %s %q, now it is %q", pair[0], pair[1], pair[2])
		}
	}
	for _, kind := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		if gone := old.Campaign.Offer.Without(offer, kind); len(gone) > 0 {
			return usageError("start a new result", "%s %q of the file is not to be had any more", kind, gone[0])
		}
	}
	return nil
}

// run carries the job out, writes the records and reports.
func (j *job) run(ctx context.Context, drain context.Context, sys System, out *recordFile, asJSON bool) error {
	memory := &bench.File{Trials: map[int]bench.Trial{}}
	view := newLiveView(sys, j.plan)
	sink := bench.Tee(bench.Write(out), memory.Sink(), view.sink)
	params := lab.Params{Target: j.station.target, FirstID: 1, Drain: drain}
	if out.old != nil {
		j.replay(out.old, memory, &params)
	} else if err := j.begin(sink); err != nil {
		return writeError(err, out.Name())
	}
	runErr := lab.Run(ctx, params, j.plan, j.station.driver, sink)
	view.close()
	if runErr != nil && drain.Err() == nil {
		fmt.Fprintf(sys.Stderr, "the records so far are in %s\n", out.Name())
		return writeError(remoteError(j.station.target, runErr), out.Name())
	}
	if err := sink(bench.Record{Finding: new(j.ending(drain).Finding())}); err != nil {
		return writeError(err, out.Name())
	}
	if err := out.Sync(); err != nil {
		return writeError(err, out.Name())
	}
	return j.report(sys, memory, out.Name(), asJSON, drain)
}

// ending is why the run ended.
func (j *job) ending(drain context.Context) plan.Ending {
	if drain.Err() != nil {
		return plan.EndInterrupted
	}
	return j.plan.End()
}

// begin writes the head of a new file.
func (j *job) begin(sink bench.Sink) error {
	records := []bench.Record{{Campaign: &j.campaign}, {Environment: &j.station.environment}}
	for _, finding := range append(j.station.findings, j.station.oneSided()...) {
		records = append(records, bench.Record{Finding: &finding})
	}
	for _, r := range records {
		if err := sink(r); err != nil {
			return err
		}
	}
	return nil
}

// replay teaches the plan what a resumed file holds.
func (j *job) replay(old, memory *bench.File, params *lab.Params) {
	*memory = *old
	for id := range old.Trials {
		params.FirstID = max(params.FirstID, id+1)
	}
	for _, s := range old.Samples {
		j.plan.Observe(old.Trials[s.Trial], s)
		params.Elapsed += s.ElapsedNS
	}
}

// report prints the ranking to stdout and where the records are to stderr.
func (j *job) report(sys System, f *bench.File, name string, asJSON bool, drain context.Context) error {
	ranking, err := rank.Of(f, rank.Options{})
	if err != nil {
		return interrupted(drain, withHint(err, "the records are in "+name+"; go on with: sshpace bench --resume "+name))
	}
	write := report.Text
	if asJSON {
		write = report.JSON
	}
	if err := write(sys.Stdout, ranking); err != nil {
		return err
	}
	fmt.Fprintf(sys.Stderr, "\nsaved: %s\nlook again: sshpace report %s\n", name, name)
	return interrupted(drain, nil)
}

// writeError explains what can be done about a result that cannot be written.
func writeError(err error, name string) error {
	if errors.Is(err, os.ErrClosed) || isNoSpace(err) {
		return withHint(err, "make room, then go on with: sshpace bench --resume "+name)
	}
	return err
}

// list prints the plan.
func (j *job) list(sys System) error {
	c := j.space.Combinations()
	fmt.Fprintf(sys.Stdout, "target          %s (%s to %s)\n", j.station.target, j.station.environment.Client, j.station.environment.Server)
	fmt.Fprintf(sys.Stdout, "combinations    %d\nbulk cells      %d\nkey exchanges   %d\nestimated time  %s\n\n", c.Total, c.Bulk, c.Kex, j.plan.Estimate().Round(time.Second))
	for _, cell := range j.space.Bulk {
		fmt.Fprintf(sys.Stdout, "bulk  %s\n", cell)
	}
	for _, name := range j.space.Kex {
		fmt.Fprintf(sys.Stdout, "kex   %s", name)
		for _, alias := range j.space.Alias[name] {
			fmt.Fprintf(sys.Stdout, " = %s", alias)
		}
		fmt.Fprintln(sys.Stdout)
	}
	for _, finding := range append(j.station.findings, j.station.oneSided()...) {
		fmt.Fprintf(sys.Stdout, "note  %s: %s\n", finding.What, finding.Why)
	}
	return nil
}
