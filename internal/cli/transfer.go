//go:build linux

package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/campaign"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/safedir"
)

// transferFlags are the flags of `sshpace transfer`.
type transferFlags struct {
	methodFlags
	streams     int
	compression unit.Switch
	files, dir  string
	there       string
}

func newTransferCommand(sys System) *cobra.Command {
	var f transferFlags
	cmd := page("transfer", &cobra.Command{
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runTransfer(cmd.Context(), sys, cmd.Flags(), &f, args)
		},
	})
	flags := cmd.Flags()
	f.register(flags)
	f.registerHost(flags)
	flags.StringSliceVar(&f.only, "only", nil, "only these: "+strings.Join(transfer.Words(), ", "))
	flags.IntVar(&f.streams, "streams", defaultStreams, "number of connections (streams) or sessions (multiplex)")
	flags.Var(&f.compression, "compression", "let ssh compress")
	flags.StringVar(&f.files, "files", "", "number and size of files, such as 1000x10K (default: one file)")
	flags.StringVar(&f.dir, "dir", "", "local directory for the files, such as on a disk (default: in memory)")
	flags.StringVar(&f.there, "remote-dir", "", "with a host: directory there for the files, such as on its disk (default: /tmp)")
	completeMeasurement(cmd, sys, &f.endFlags)
	completePolicies(cmd)
	return cmd
}

// Sessions of streams and multiplex.
const (
	mostStreams    = 64
	defaultStreams = 4
)

// runTransfer is the command.
func runTransfer(ctx context.Context, sys System, flags *pflag.FlagSet, f *transferFlags, args []string) error {
	file, err := f.adopted(sys, "transfer", flags, &args)
	if err != nil {
		return err
	}
	if file != nil {
		defer file.Close()
	}
	modes, unknown := transfer.Modes(f.only)
	if unknown != "" {
		return usageError("use "+strings.Join(transfer.Words(), ", "), "unknown --only %q", unknown)
	}
	if f.streams < 1 || f.streams > mostStreams {
		return usageError("such as --streams 4", "--streams %d: want 1 to %d", f.streams, mostStreams)
	}
	paths, pathErr := transfer.Paths(f.rtt, f.rate, f.loss)
	count, each, filesErr := transfer.ManyFiles(f.files)
	destination, destinationErr := f.connection.destination(args)
	if err := cmp.Or(f.check(), pathErr, filesErr, destinationErr); err != nil {
		return err
	}
	if len(args) > 0 && len(paths) > 0 {
		return usageError("leave the host out", "--rtt, --rate and --loss are for the private server on loopback")
	}
	if wrong, hint := transfer.Misplaced(modes, count, f.dir, f.there, len(args) > 0); wrong != "" {
		return usageError(hint, "%s", wrong)
	}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	p, err := f.params(sys, flags, "transfer", file)
	if err != nil {
		return err
	}
	return interrupted(drain, withTestbed(drain, sys, safedir.WorkdirParams{InMemory: true, In: f.dir}, testbed.Params{
		SSH: f.ssh, SSHD: f.sshd, Engine: record.EngineOpenSSH, Data: f.data, Connect: time.Duration(f.connect), Destination: destination,
		Route: f.connection.params(sys), Everything: true,
	}, func(bed *testbed.Testbed) error {
		if file != nil {
			if err := bed.Resumes(file.Old, alg.Offer{}); err != nil {
				return err
			}
		}
		suites, err := campaign.Suites(drain, bed, f.selection())
		if err != nil {
			return err
		}
		ground, cleanUp, err := transfer.Open(drain, bed, bed.Rig.Dir.Path, f.there, f.data == "random", helper.Line)
		defer cleanUp()
		if drain.Err() != nil {
			return context.Cause(drain)
		}
		if err != nil {
			return withHint(err, "see what ssh says: ssh "+shell.Line(bed.Destination.Typed()...)+" true; files go to its /tmp, or --remote-dir DIR")
		}
		p.Name, p.Campaign.Target, p.Campaign.Engine, p.Campaign.Server, p.Environment = bed.Target, bed.Target, bed.Engine, bed.Server, &bed.Environment
		return campaign.Methods(drain, p, func(turns transfer.Turns, sink record.Sink) error {
			return ground.Measure(ctx, drain, transfer.Params{
				Modes: modes, Directions: p.Campaign.Directions, Suites: suites, Paths: paths, Turns: turns,
				Options: transfer.Options{Streams: f.streams, Compression: bool(f.compression), Files: count, FileBytes: each},
			}, sink)
		})
	}))
}
