//go:build linux

package cli

import (
	"cmp"
	"math/rand/v2"

	"github.com/spf13/pflag"

	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
)

// methodFlags are the flags that transfer and programs have in common: both move bytes in
// several ways, in turns.
type methodFlags struct {
	measureFlags
	only []string
	size byteLimit
	rtt  []string
	rate byteRate
	loss percent
	list bool
}

// register defines them.
func (m *methodFlags) register(flags *pflag.FlagSet) {
	m.measureFlags.register(flags, "random") // rsync, compression and disks are not the same with zeros
	m.roundFlags.register(flags, 3)
	flags.Var(&m.size, "size", "bytes to move (default: as many as take 0.7 s)")
	flags.StringSliceVar(&m.rtt, "rtt", nil, "simulated round trip, such as 50ms; several, such as 0,20ms,100ms, give throughput over the round trip")
	flags.Var(&m.rate, "rate", "simulated bandwidth in bytes per second, such as 12M, 12MB/s or 100Mbit/s")
	flags.Var(&m.loss, "loss", "simulated loss of segments, in percent")
	flags.BoolVar(&m.list, "list", false, "print the plan and measure nothing")
}

// adopted opens the file that command goes on with, if there is one, and takes over what
// it says. The file may be anybody's: check sees it as it sees flags.
func (m *methodFlags) adopted(sys System, command string, flags *pflag.FlagSet, args *[]string) (*store.File, error) {
	file, err := campaign.Reopen(store.Of(sys.Getenv), m.resume, command, m.connection.label, args)
	if err != nil || file == nil {
		if !flags.Changed("seed") {
			m.seed = rand.Uint64N(1 << 53)
		}
		return nil, err
	}
	err = cmp.Or(keepPlan(flags), adoptWords(flags, file.Old.Campaign.Asked))
	m.adopt(flags.Changed, file.Old.Campaign)
	if err = cmp.Or(err, unfit(m.resume, m.check())); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

// params are how methods are measured, as far as flags say it.
func (m *methodFlags) params(sys System, flags *pflag.FlagSet, command string, file *store.File) (campaign.MethodParams, error) {
	p := campaign.MethodParams{
		Campaign: record.Campaign{Command: command, Tool: toolVersion(), Directions: m.directions(), Data: m.data, Policy: m.policy, Asked: given(flags, asking)},
		Turns:    transfer.Turns{Seed: m.seed, List: m.list, Size: int64(m.size)}, File: file, Out: m.out, Output: m.output(sys, command, m.endFlags.options()),
	}
	rounds, err := m.of(1)
	p.Turns.Rounds = rounds
	return p, err
}
