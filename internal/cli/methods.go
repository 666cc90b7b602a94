//go:build linux

package cli

import (
	"cmp"

	"github.com/spf13/pflag"

	"sshpace/internal/bench/rounds"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/campaign"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// methodFlags are the flags that transfer and programs share: both move bytes in several ways, in
// turns.
type methodFlags struct {
	measureFlags
	only []string
	size byteLimit
	rtt  []string
	rate byteRate
	loss percent
}

func (f *methodFlags) register(flags *pflag.FlagSet) {
	f.measureFlags.register(flags, "random") // rsync, compression and disks are not the same with zeros
	f.roundFlags.register(flags, 3)
	flags.Var(&f.size, "size", "bytes to move (default: as many as take 0.7 s)")
	flags.StringSliceVar(&f.rtt, "rtt", nil, "simulated round trip, such as 50ms; several, such as 0,20ms,100ms, give throughput over the round trip")
	flags.Var(&f.rate, "rate", "simulated bandwidth in bytes per second, such as 12M, 12MB/s or 100Mbit/s")
	flags.Var(&f.loss, "loss", "simulated loss of segments, in percent")
}

// adopt sets the flags as they were when the file of a campaign was made, and checks them.
func (f *methodFlags) adopt(flags *pflag.FlagSet, c record.Campaign, _ bool) error {
	err := adoptWords(flags, c.Asked)
	f.measureFlags.adopt(flags.Changed, c)
	return cmp.Or(err, unfit(f.resume, f.measureFlags.check()))
}

// turns returns how methods are measured, and over which paths.
func (f *methodFlags) turns() (turns transfer.Turns, paths []relay.Path, err error) {
	paths, pathErr := transfer.Paths(f.rtt, f.rate, f.loss)
	length, err := f.of(1)
	return transfer.Turns{Plan: rounds.Plan{Seed: f.seed, List: f.list, Rounds: length}, Size: int64(f.size)}, paths, cmp.Or(f.measureFlags.check(), pathErr, err)
}

// params returns how methods are measured and recorded, as far as flags set it.
func (f *methodFlags) params(m measurement, command string, turns transfer.Turns) campaign.MethodParams {
	return campaign.MethodParams{
		Campaign: record.Campaign{Command: command, Tool: toolVersion(), Directions: f.directions(), Data: f.data, Policy: f.policy, Asked: given(m.flags, asking)},
		Turns:    turns, Output: m.Output,
	}
}
