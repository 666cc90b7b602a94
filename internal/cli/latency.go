package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/latency"
	"sshpace/internal/show/findings"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/terminal"
)

type latencyFlags struct {
	connection        connectionFlags
	ssh               string
	connect, interval seconds
	budget            seconds
	count             int
	only              []string
	load              string
	quiet             bool
	foundFlags
}

func newLatencyCommand(sys System) *cobra.Command {
	var f latencyFlags
	cmd := page("latency", &cobra.Command{
		Args: takes(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return runLatency(cmd.Context(), sys, f, args[0]) },
	})
	f.interval = seconds(200 * time.Millisecond)
	flags := cmd.Flags()
	flags.IntVarP(&f.count, "count", "c", 0, "bytes to send in each session (default: until Ctrl-C)")
	flags.Var(&f.budget, "budget", "measuring time instead of --count, such as 30s (default: until Ctrl-C)")
	flags.Var(&f.interval, "interval", "time between two bytes")
	flags.StringArrayVar(&f.only, "only", nil, "only these sessions: pty, unobscured, pipe, kept; repeatable")
	flags.StringVar(&f.load, "load", "", "also measure during a transfer: upload or download")
	flags.Lookup("load").NoOptDefVal = latency.Upload
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.Var(&f.connect, "connect-timeout", "time allowed for connection and login"+otherwise(connectTimeout))
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress, only the summary")
	f.register(flags)
	f.connection.register(flags)
	completeHosts(cmd, sys, &f.connection)
	return cmd
}

func runLatency(ctx context.Context, sys System, f latencyFlags, host string) error {
	if err := f.check(); err != nil {
		return err
	}
	d, err := route.Destination(f.connection.Flags, host)
	if err != nil {
		return err
	}
	drain, _, stop := interruptsSaying(ctx, sys, "waiting for the last bytes; press Ctrl-C again to stop at once")
	defer stop()
	b, params := bed.Bed{}, f.connection.params(sys)
	params.ConnectTimeout = time.Duration(f.connect)
	if b.SSH, err = openssh.FindClient(drain, f.ssh); err != nil {
		return err
	}
	if b.Destination, b.Connect, err = route.ThroughJumps(drain, params, b.SSH, d, connectTimeout); err != nil {
		return interrupted(drain, err)
	}
	s, err := latency.OpenAll(drain, b, splitLists(f.only), f.load, progress(sys, f.quiet, ""))
	if err != nil {
		return interrupted(drain, latency.Explain(b, err))
	}
	defer s.Close()
	return interrupted(drain, f.run(drain, sys, b, s))
}

// run sends bytes until ctx ends, and shows the results.
func (f latencyFlags) run(ctx context.Context, sys System, b bed.Bed, s *latency.Sessions) error {
	if len(s.Names()) == 0 {
		return usageError("leave --only out, or name pty or pipe", "there is nothing to measure: %s", strings.Join(s.Notes, "; "))
	}
	view := sys.screen()
	if f.quiet {
		view = terminal.NewScreen(io.Discard, sys.Getenv)
	}
	live := findings.NewLiveLatency(view, s.Names(), "press Ctrl-C for the summary")
	result, failed := s.Run(ctx, time.Duration(f.interval), sched.Rounds{Count: f.count, Budget: time.Duration(f.budget)}, live.Add)
	live.Rest()
	report := findings.LatencyOf(b, s, time.Duration(f.interval), result)
	text := func(w io.Writer) error { return report.Text(w, terminal.Width(w, sys.Getenv)) }
	return errors.Join(f.show(sys, text, report.JSON), latency.Explain(b, failed))
}

func (f latencyFlags) check() error {
	for _, identity := range f.connection.Identities {
		if _, err := strconv.ParseFloat(identity, 64); err == nil {
			return usageError("write --interval "+identity+"; -i names a key file, as with ssh", "-i %s: there is no such key file", identity)
		}
	}
	return cmp.Or(latency.Check(time.Duration(f.interval), f.load, splitLists(f.only)), f.Check())
}
