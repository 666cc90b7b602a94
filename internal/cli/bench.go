//go:build linux

package cli

import (
	"cmp"
	"math"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/campaign"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

type benchFlags struct {
	measureFlags
	engine, server string
	precision      percent
	exhaustive     bool
	size           byteLimit
	all            bool
	connections    int
}

const defaultBudget = 60 * time.Second

func newBenchCommand(sys System) *cobra.Command {
	f := benchFlags{size: 64 << 20}
	cmd := f.command(sys, "bench", takes(0, 1), &f)
	flags := cmd.Flags()
	f.register(flags, "zero")
	f.registerHost(flags)
	f.budget = seconds(defaultBudget)
	flags.Var(&f.budget, "budget", "measuring time, such as 90s or 5m; a plain number is seconds")
	flags.IntVar(&f.rounds, "rounds", 0, "number of complete rounds, instead of a time; with --exhaustive: copies of each combination")
	flags.Var(&f.precision, "precision", "stop earlier when all intervals are within this many percent")
	flags.BoolVar(&f.all, "all", false, "with a host: compare every cipher and MAC, not only those that the policy allows")
	flags.BoolVar(&f.exhaustive, "exhaustive", false, "copy --size bytes with every single combination, --rounds times (default 1)")
	flags.Var(&f.size, "size", "with --exhaustive: bytes of each copy")
	flags.StringVar(&f.engine, "engine", "", "client: openssh, or native for the built-in one (default: openssh where there is an ssh)")
	flags.StringVar(&f.server, "server", "", "private server: openssh, or native for the built-in one (default: openssh where there is an sshd)")
	flags.IntVar(&f.connections, "connections", 0, "connections open at a time (default: as many as memory and file limits allow)")
	completeMeasurement(cmd, sys, &f.endFlags)
	completePolicies(cmd)
	return cmd
}

// check refuses flags that make no sense, alone, together or with a host.
func (f *benchFlags) check(flags *pflag.FlagSet, hostGiven bool) error {
	return cmp.Or(f.sane(hostGiven), checkIdle(flags, f.idle(hostGiven)))
}

// sane refuses values that make no sense, alone or with a host.
func (f *benchFlags) sane(hostGiven bool) error {
	if err := cmp.Or(f.measureFlags.check(), choose("engine", f.engine), choose("server", f.server)); err != nil {
		return err
	}
	switch {
	case hostGiven && f.data == "random" && f.direction != "upload":
		return usageError("leave --data out: to a cipher zeros are like any other data", "--data random from a host would measure the host's /dev/urandom")
	case f.budget <= 0:
		return usageError("such as --budget 90s", "--budget must be positive")
	case !(f.precision >= 0) || math.IsInf(float64(f.precision), 0):
		return usageError("such as --precision 2", "--precision must be positive")
	case hostGiven && (f.engine == "native" || f.server != ""):
		return usageError("leave them out, or leave the host out", "--engine native and --server are for the private server on loopback")
	case hostGiven && f.exhaustive:
		return usageError("leave the host out to measure on loopback", "--exhaustive would make thousands of logins on %s", "a host of yours")
	}
	return nil
}

// idle lists flags that would have no effect together with others.
func (f *benchFlags) idle(hostGiven bool) []idleFlag {
	return []idleFlag{
		{[]string{"size"}, !f.exhaustive, "it is for --exhaustive"},
		{[]string{"ssh"}, f.engine == "native", "--engine native starts no ssh"},
		{[]string{"sshd"}, f.server == "native", "--server native starts no sshd"},
		{[]string{"sshd"}, hostGiven, "a host has its own"},
		{[]string{"all"}, !hostGiven && f.resume == "", "on loopback everything is measured"},
	}
}

// adopt takes the fixed values of a resumed run from its file.
func (f *benchFlags) adopt(flags *pflag.FlagSet, c record.Campaign, hostGiven bool) error {
	f.measureFlags.adopt(flags.Changed, c)
	f.engine = string(c.Engine)
	if c.Server != record.ServerRemote {
		f.server = string(c.Server)
	}
	f.exhaustive = c.SizeBytes > 0
	if f.exhaustive && flags.Changed("rounds") {
		return usageError("leave it out: a resumed run keeps its plan", "--rounds with --resume of a run with --exhaustive")
	}
	if f.exhaustive {
		f.rounds = max(1, c.Rounds)
	}
	f.size = byteLimit(max(1, c.SizeBytes))
	if !flags.Changed("precision") {
		f.precision = percent(c.Precision)
	}
	return unfit(f.resume, f.sane(hostGiven))
}

// measure prepares testbed and plan, runs and reports.
func (f *benchFlags) measure(sys System, m measurement) error {
	p := f.bed(sys, m.destination, f.data)
	p.Engine, p.Server = record.Engine(f.engine), record.ServerKind(f.server)
	return withTestbed(m.drain, sys, safedir.WorkdirParams{}, p, func(bed *testbed.Testbed) error {
		run, err := campaign.New(m.hard, bed, f.params(m.Output))
		if err != nil {
			return err
		}
		if f.list {
			return run.List()
		}
		return run.Do(m.hard, m.drain)
	})
}

// params returns the flags as parameters of a measurement.
func (f *benchFlags) params(o campaign.Output) campaign.Params {
	c := record.Campaign{
		Command: "bench", Tool: toolVersion(), Seed: f.seed, Directions: f.directions(), Data: f.data, Policy: f.policy,
		All: f.all || len(f.ciphers)+len(f.macs) > 0, BudgetNS: time.Duration(f.budget), Precision: float64(f.precision), Rounds: f.rounds,
	}
	if config := f.connection.Config; config != "" {
		if whole, err := filepath.Abs(config); err == nil && config != "none" {
			config = whole // for commands that are given elsewhere
		}
		c.Asked = map[string][]string{"config": {config}}
	}
	if f.exhaustive {
		c.BudgetNS, c.Rounds, c.SizeBytes = 0, max(1, f.rounds), unit.Bytes(f.size)
	} else if f.rounds > 0 {
		c.BudgetNS = 0
	}
	return campaign.Params{
		Campaign: c, Selection: f.selection(), Connections: f.connections, Preset: len(f.ciphers) > 0 || f.policy != "", Output: o,
	}
}
