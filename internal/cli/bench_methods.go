//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os/user"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/hostinfo"
	"sshpace/internal/bench/programs"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/relay"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
)

// methodFlags are the flags of bench that measure transfer methods, instead of
// every cipher through a pipe.
type methodFlags struct {
	pairs, modes  []string
	streams       int
	compression   unit.Switch
	files, folder string
	there         string
	rtt           []string
	rate          string
	loss          percent
}

func (m *methodFlags) register(flags *pflag.FlagSet) {
	flags.StringSliceVar(&m.pairs, "pairs", nil, "measure SSH programs of several makers with each other: all, or CLIENT:SERVER such as putty:openssh,dropbear:*")
	flags.StringSliceVar(&m.modes, "mode", nil, "measure what people do: pipe, scp, sftp, rsync, forward, jump, multiplex, streams or all")
	flags.IntVar(&m.streams, "streams", defaultStreams, "with --mode: connections of streams, sessions of multiplex")
	flags.Var(&m.compression, "compression", "with --mode: let ssh compress")
	flags.StringVar(&m.files, "files", "", "with --mode: so many files of such a size, as 1000x10K, instead of one")
	flags.StringVar(&m.folder, "folder", "", "with --mode: where the files are, such as on a disk (default: in memory)")
	flags.StringVar(&m.there, "remote-folder", "", "with --mode and a host: where the files are there, such as on its disk (default: /tmp)")
	flags.StringSliceVar(&m.rtt, "rtt", nil, "with --mode or --pairs: round trip of the path to the private server, such as 50ms; several draw throughput over them: 0,20ms,100ms")
	flags.StringVar(&m.rate, "rate", "", "with --mode or --pairs: bytes per second of that path, such as 12M or 12MB/s")
	flags.Var(&m.loss, "loss", "with --mode or --pairs: percentage of lost segments on that path")
}

// asked reports whether methods are to be measured.
func (m *methodFlags) asked() bool { return len(m.pairs) > 0 || len(m.modes) > 0 }

// ofModes are flags that mean nothing without --mode; ofMethods are for --pairs, too.
var (
	ofModes   = []string{"streams", "compression", "files", "folder", "remote-folder"}
	ofMethods = []string{"rtt", "rate", "loss"}
)

// run measures what the flags ask for.
func (m *methodFlags) run(ctx context.Context, sys System, flags *pflag.FlagSet, f benchFlags, file *store.File, args []string) error {
	given := flags.Changed
	if len(m.pairs) > 0 && len(m.modes) > 0 {
		return usageError("leave one of them out", "--pairs and --mode exclude each other")
	}
	for name, meaningless := range map[string][]string{"pairs": append(pairsIdle, ofModes...), "mode": modesIdle} {
		for _, flag := range meaningless {
			if given(name) && given(flag) {
				return usageError("leave it out", "--%s has no meaning with --%s", flag, name)
			}
		}
	}
	if file == nil && !given("seed") {
		f.seed = rand.Uint64N(1 << 53)
	}
	if len(m.pairs) > 0 {
		return runPairs(ctx, sys, flags, f, file, args)
	}
	return runModes(ctx, sys, flags, f, file, args)
}

// paths reads --rtt, --rate and --loss: one for each round trip; none where there
// is nothing to be made of a path.
func (m *methodFlags) paths() ([]relay.Path, error) {
	path := relay.Path{Loss: relay.Loss{Share: float64(m.loss) / 100}}
	if m.loss < 0 || m.loss > 50 {
		return nil, usageError("such as --loss 1", "--loss must be positive, and at most half of all segments can be lost")
	}
	if m.rate != "" {
		rate, err := unit.ParseThroughput(m.rate)
		if err != nil {
			return nil, usageError("such as --rate 12M", "--rate %q is no number of bytes per second", m.rate)
		}
		path.Rate = float64(rate)
	}
	if len(m.rtt) == 0 && path == (relay.Path{}) {
		return nil, nil
	}
	if len(m.rtt) == 0 {
		return []relay.Path{path}, nil
	}
	var paths []relay.Path
	for _, text := range m.rtt {
		var rtt seconds
		if err := rtt.Set(strings.TrimSpace(text)); err != nil || time.Duration(rtt) > longestTrip {
			return nil, usageError("such as --rtt 50ms or --rtt 0,20ms,100ms", "--rtt %q is no round trip of 0 to %s", text, longestTrip)
		}
		path.Delay = time.Duration(rtt) / 2
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// manyFiles reads --files.
func (m *methodFlags) manyFiles() (count int, size int64, err error) {
	if m.files == "" {
		return 0, 0, nil
	}
	number, each, _ := strings.Cut(m.files, "x")
	count, err = strconv.Atoi(number)
	bytes, sizeErr := unit.ParseBytes(each)
	if err != nil || sizeErr != nil || count < 1 || count > mostFiles || int64(bytes)*int64(count) > mostFileBytes {
		return 0, 0, usageError("such as --files 1000x10K", "--files %q: want a number of files and the size of each, together no more than 4 GiB", m.files)
	}
	return count, int64(bytes), nil
}

// Bounds of --files, and the default of --streams.
const (
	mostFiles      = 100_000
	mostFileBytes  = 4 << 30
	mostStreams    = 64
	defaultStreams = 4
	longestTrip    = 10 * time.Second
)

// pairsIdle are the flags of bench that mean nothing with --pairs, modesIdle with
// --mode.
var (
	pairsIdle = append([]string{"policy", "kex", "engine", "server", "direction"}, modesIdle...)
	modesIdle = []string{"budget", "precision", "exhaustive", "runs", "list", "connections", "engine", "server"}
)

// Defaults of runs of methods.
const (
	defaultRounds = 3
	longRun       = 700 * time.Millisecond // that a long run is to take
	mostBytes     = 256 << 20              // of a long run: they are in memory
)

// turns is how methods are measured, as far as flags say it.
func (f *benchFlags) turns(given func(string) bool, file *store.File, view *terminal.Screen) (transfer.Turns, error) {
	t := transfer.Turns{Rounds: f.rounds, Seed: f.seed, RunTime: longRun, Most: mostBytes}
	if file != nil {
		t.Old = file.Old
	}
	if t.Rounds == 0 {
		t.Rounds = defaultRounds
	}
	if given("size") {
		size, err := unit.ParseBytes(f.size)
		if err != nil {
			return t, usageError("such as --size 64M", "--%s", err)
		}
		t.Size = int64(size)
	}
	total := t.Rounds
	t.Told = func(m record.Method, round int) {
		line := fmt.Sprintf("round %d of %d: %s", round, total, document.MethodLabel(m))
		if round == 0 {
			line = "trying " + document.MethodLabel(m)
		}
		if view.Width > 0 {
			_ = view.Draw(line)
		} else if round == 0 {
			fmt.Fprintln(view, line)
		}
	}
	return t, nil
}

// campaign is the head of a result of methods.
func (f *benchFlags) campaign(flags *pflag.FlagSet, target string, rounds int) record.Campaign {
	return record.Campaign{
		Tool: toolVersion(), Seed: f.seed, Target: target, Directions: f.directions(), Data: f.data, Rounds: rounds, Asked: asked(flags),
	}
}

// randomly makes files hold random bytes, unless the user says otherwise: rsync,
// compression and disks are not the same with zeros.
func (f *benchFlags) randomly(given func(string) bool) {
	if !given("data") {
		f.data = "random"
	}
}

// runPairs is bench --pairs.
func runPairs(ctx context.Context, sys System, flags *pflag.FlagSet, f benchFlags, file *store.File, args []string) (err error) {
	if len(args) > 0 {
		return usageError("leave the host out", "--pairs starts private servers on loopback")
	}
	paths, pathErr := f.methods.paths()
	if err := cmp.Or(f.check(false), programs.Check(f.methods.pairs), pathErr); err != nil {
		return err
	}
	f.randomly(flags.Changed)
	me, err := user.Current()
	if err != nil {
		return withHint(err, "add the user to /etc/passwd: servers look it up there")
	}
	view := terminal.NewScreen(sys.Stderr, sys.Getenv)
	sys.Stderr = view
	drain, ctx, stop := interruptsSaying(ctx, view, sys, finishing)
	defer stop()
	turns, err := f.turns(flags.Changed, file, view)
	if err != nil {
		return err
	}
	environment := hostinfo.Describe(testbed.LoadLook)
	params := programs.Params{
		Only: f.methods.pairs, SSH: f.ssh, SSHD: f.sshd, Ciphers: alg.NamesOf(alg.Cipher, f.ciphers), MAC: strings.Join(f.macs, ""),
		AES: slices.Contains(environment.CPUFeatures, "aesni") || slices.Contains(environment.CPUFeatures, "aes"), Random: f.data == "random", Paths: paths, Turns: turns,
	}
	if slices.Equal(f.methods.pairs, []string{"all"}) {
		params.Only = nil
	}
	dir, err := memoryDir(sys)
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
	if file != nil {
		if err := (&testbed.Testbed{Target: testbed.Loopback, Environment: environment}).Resumes(file.Old, alg.Offer{}); err != nil {
			return err
		}
	} else if file, err = store.Of(sys.Getenv).Create(f.out, "pairs"); err != nil {
		return err
	}
	defer file.Close()
	head := f.campaign(flags, testbed.Loopback, turns.Rounds)
	return interrupted(drain, campaign.Methods(drain, f.output(sys, view), file, head, &environment, func(sink record.Sink) error {
		return b.Measure(ctx, drain, params, sink)
	}))
}

// runModes is bench --mode.
func runModes(ctx context.Context, sys System, flags *pflag.FlagSet, f benchFlags, file *store.File, args []string) error {
	modes, unknown := transfer.Modes(f.methods.modes)
	if unknown != "" {
		return usageError("use "+strings.Join(transfer.Words(), ", "), "unknown --mode %q", unknown)
	}
	if f.methods.streams < 1 || f.methods.streams > mostStreams {
		return usageError("such as --streams 4", "--streams %d: want 1 to %d", f.methods.streams, mostStreams)
	}
	paths, pathErr := f.methods.paths()
	count, each, filesErr := f.methods.manyFiles()
	destination, destinationErr := f.connection.destination(args)
	if err := cmp.Or(f.check(len(args) > 0), pathErr, filesErr, destinationErr); err != nil {
		return err
	}
	f.randomly(flags.Changed)
	if len(args) > 0 && len(paths) > 0 {
		return usageError("leave the host out", "--rtt, --rate and --loss are for the private server on loopback")
	}
	if wrong, hint := transfer.Misplaced(modes, count, f.methods.folder, f.methods.there, len(args) > 0); wrong != "" {
		return usageError(hint, "%s", wrong)
	}
	view := terminal.NewScreen(sys.Stderr, sys.Getenv)
	sys.Stderr = view
	drain, ctx, stop := interruptsSaying(ctx, view, sys, finishing)
	defer stop()
	turns, err := f.turns(flags.Changed, file, view)
	if err != nil {
		return err
	}
	return interrupted(drain, withTestbed(drain, sys, safedir.WorkdirParams{InMemory: true, In: f.methods.folder}, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.EngineOpenSSH, Data: f.data, Connect: time.Duration(f.connect), Destination: destination,
		Route: f.connection.params(sys), Everything: true,
	}, func(bed *testbed.Testbed) error {
		if err := bed.Resumes(turns.Old, alg.Offer{}); err != nil {
			return err
		}
		suites, err := campaign.Suites(drain, bed, f.selection())
		if err != nil {
			return err
		}
		ground, cleanUp, err := transfer.Open(drain, bed, bed.Rig.Dir.Path, f.methods.there, f.data == "random", helper)
		defer cleanUp()
		if drain.Err() != nil {
			return context.Cause(drain)
		}
		if err != nil {
			return withHint(err, "see what ssh says: ssh "+shell.Line(append(slices.Clone(bed.Destination.Options), bed.Destination.Host)...)+" true; files go to its /tmp, or --remote-folder DIR")
		}
		if file == nil {
			if file, err = store.Of(sys.Getenv).Create(f.out, bed.Target); err != nil {
				return err
			}
			defer file.Close()
		}
		head := f.campaign(flags, bed.Target, turns.Rounds)
		head.Engine, head.Server = bed.Engine, bed.Server
		return campaign.Methods(drain, f.output(sys, view), file, head, &bed.Environment, func(sink record.Sink) error {
			return ground.Measure(ctx, drain, transfer.Params{
				Modes: modes, Directions: f.directions(), Suites: suites, Paths: paths, Turns: turns,
				Options: transfer.Options{Streams: f.methods.streams, Compression: bool(f.methods.compression), Files: count, FileBytes: each},
			}, sink)
		})
	}))
}
