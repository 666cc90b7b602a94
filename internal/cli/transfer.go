//go:build linux

package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/campaign"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

type transferFlags struct {
	methodFlags
	streams     int
	compression unit.Switch
	files, dir  string
	there       string

	asked transfer.Params // the selection by all of these
}

func newTransferCommand(sys System) *cobra.Command {
	var f transferFlags
	cmd := f.command(sys, "transfer", takes(0, 1), &f)
	flags := cmd.Flags()
	f.register(flags)
	f.registerHost(flags)
	flags.StringSliceVar(&f.only, "only", nil, "only these: "+strings.Join(transfer.Words(), ", "))
	flags.IntVar(&f.streams, "streams", defaultStreams, "number of connections (streams, mscp) or sessions (multiplex)")
	flags.Var(&f.compression, "compression", "let ssh compress")
	flags.StringVar(&f.files, "files", "", "number and size of files, such as 1000x10K (default: one file)")
	flags.StringVar(&f.dir, "dir", "", "local directory for the files, such as on a disk (default: in memory)")
	flags.StringVar(&f.there, "remote-dir", "", "with a host: directory there for the files, such as on its disk (default: /tmp)")
	completeMeasurement(cmd, sys, &f.endFlags)
	completePolicies(cmd)
	return cmd
}

// The default sessions of streams and multiplex.
const (
	mostStreams    = 64
	defaultStreams = 4
)

// check refuses flags that make no sense, and parses the others.
func (f *transferFlags) check(_ *pflag.FlagSet, hostGiven bool) error {
	modes, unknown := transfer.Modes(f.only)
	if unknown != "" {
		return usageError("use "+strings.Join(transfer.Words(), ", "), "unknown --only %q", unknown)
	}
	if f.streams < 1 || f.streams > mostStreams {
		return usageError("such as --streams 4", "--streams %d: want 1 to %d", f.streams, mostStreams)
	}
	turns, paths, err := f.turns()
	count, each, filesErr := transfer.ManyFiles(f.files)
	f.asked = transfer.Params{
		Modes: modes, Directions: f.directions(), Paths: paths, Turns: turns,
		Options: transfer.Options{Streams: f.streams, Compression: bool(f.compression), Files: count, FileBytes: each},
	}
	if err := cmp.Or(err, filesErr); err != nil {
		return err
	}
	if hostGiven && len(paths) > 0 {
		return usageError("leave the host out", "--rtt, --rate and --loss are for the private server on loopback")
	}
	if wrong, hint := transfer.Misplaced(modes, count, f.dir, f.there, hostGiven); wrong != "" {
		return usageError(hint, "%s", wrong)
	}
	return nil
}

// measure prepares testbed and directories, measures and reports.
func (f *transferFlags) measure(sys System, m measurement) error {
	ends, p := f.bed(sys, m.destination, f.data), f.asked
	ends.Everything = true
	return withTestbed(m.drain, sys, safedir.WorkdirParams{InMemory: true, In: f.dir}, ends, func(bed *testbed.Testbed) (err error) {
		if p.Suites, err = campaign.Suites(m.drain, bed, f.selection()); err != nil {
			return err
		}
		if bed.Destination.Master == "" && len(f.only) == 0 {
			p.Modes = slices.DeleteFunc(p.Modes, func(m record.Mode) bool { return m == record.ModeKept })
		}
		ground, cleanUp, err := transfer.Open(m.drain, bed, bed.Dir.Path, f.there, f.data == "random")
		defer cleanUp()
		if m.drain.Err() != nil {
			return context.Cause(m.drain)
		}
		if err != nil {
			return withHint(err, "see what ssh says: ssh "+shell.Line(bed.Destination.Typed()...)+" true; files go to its /tmp, or --remote-dir DIR")
		}
		all := f.params(m, "transfer", p.Turns)
		all.On(bed)
		return campaign.Methods(m.drain, all, func(turns transfer.Turns, sink record.Sink) error {
			p.Turns = turns
			return ground.Measure(m.hard, m.drain, p, sink)
		})
	})
}
