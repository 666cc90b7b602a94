package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
)

// lookFlags are the flags of commands that look at many hosts by the native engine.
type lookFlags struct {
	connection     connectionFlags
	selection      fleetHosts
	fanout         int
	connectTimeout seconds
	retryFor       seconds
	json           bool
}

// command returns a command without arguments that looks at hosts; what names the part of a login
// that the connect timeout covers.
func (f *lookFlags) command(sys System, name, what string, run func(context.Context, System) error) *cobra.Command {
	cmd := page(name, &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("retry-for") && f.retryFor == 0 {
				f.retryFor = -1 // never, where 0 would be the default
			}
			return run(cmd.Context(), sys)
		},
	})
	flags := cmd.Flags()
	f.connection.register(flags)
	f.selection.register(flags)
	flags.IntVarP(&f.fanout, "fanout", "f", 0, "limit of parallel connections; 0 = as many as the servers and this machine can handle")
	flags.Var(&f.connectTimeout, "connect-timeout", "time for name look-up, connection and "+what+otherwise(fleet.ConnectTimeout))
	flags.Var(&f.retryFor, "retry-for", "how long to retry hosts that are too busy, or refuse so many connections (default 2m, 30s if none succeeded there)")
	completeSets(cmd, sys, &f.connection)
	return cmd
}

// params returns the parameters of the fan-out.
func (f *lookFlags) params(drain context.Context) fanout.Params {
	return fanout.Params{Fanout: f.fanout, RetryFor: time.Duration(f.retryFor), Drain: drain}
}

// open returns the hosts, and their executor, which the caller closes.
func (f *lookFlags) open(ctx context.Context, sys System, p reach.Params) (hosts []host.Host, e *reach.Executor, err error) {
	if err := route.CheckFlags(f.connection.Flags); err != nil {
		return nil, nil, err
	}
	p.Flags, p.Getenv, p.Stderr = f.connection.Flags, sys.Getenv, sys.Stderr
	p.Engine, p.ConnectTimeout = reach.Native, time.Duration(f.connectTimeout)
	if e, err = reach.New(ctx, p); err != nil {
		return nil, nil, err
	}
	hosts, err = f.selection.hosts(ctx, sys, history.New(history.Dir(sys.Getenv)), e.Router)
	if err == nil {
		err = e.Check(ctx, hosts)
	}
	if err != nil {
		e.Close()
	}
	return hosts, e, err
}
