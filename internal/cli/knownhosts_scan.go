package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/scan"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshfp"
	"sshpace/internal/sys/terminal"
)

// scanFlags are the flags of `sshpace known-hosts scan`.
type scanFlags struct {
	connection     connectionFlags
	selection      fleetHosts
	fanout         int
	connectTimeout seconds
	retryFor       seconds
	all            bool
	list           string
	signature      scan.Signature
	write          bool
	json           bool
}

func newKnownHostsScanCommand(sys System) *cobra.Command {
	var f scanFlags
	cmd := page("known-hosts-scan", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("retry-for") && f.retryFor == 0 {
				f.retryFor = -1 // never, where 0 would be the default
			}
			return f.run(cmd.Context(), sys)
		},
	})
	flags := cmd.Flags()
	f.connection.register(flags)
	f.selection.register(flags)
	flags.IntVarP(&f.fanout, "fanout", "f", 0, "limit of parallel connections; 0 = as many as the servers and this machine can handle")
	flags.Var(&f.connectTimeout, "connect-timeout", "time for name look-up, connection and key exchange"+otherwise(fleet.ConnectTimeout))
	flags.Var(&f.retryFor, "retry-for", "how long to retry hosts that are too busy, or refuse so many connections (default 2m, 30s if none succeeded there)")
	flags.BoolVar(&f.all, "all-types", false, "ask for a key of each type, one connection each, not only for the one that a login would see")
	flags.StringVar(&f.list, "fingerprints", "", "file of fingerprints to trust, one a line: HOST SHA256:..., or as ssh-keygen -lf prints them")
	flags.StringVar(&f.signature.File, "signed", "", "signature of that file by ssh-keygen -Y sign; without a valid one nothing is done")
	flags.StringVar(&f.signature.AllowedSigners, "allowed-signers", "", "file of the keys that may sign, see ALLOWED SIGNERS in ssh-keygen(1)")
	flags.StringVar(&f.signature.Principal, "principal", "", "name of the signer in that file")
	flags.BoolVar(&f.write, "write", false, "write the lines of confirmed keys into your known_hosts file instead of printing them")
	flags.BoolVar(&f.json, "json", false, "print all keys as JSON")
	completeSets(cmd, sys, &f.connection)
	return cmd
}

// open reads the list that confirms keys, nil if none is given.
func (f *scanFlags) open(ctx context.Context) (*scan.List, error) {
	s := &f.signature
	switch unsigned := *s == (scan.Signature{}); {
	case unsigned && f.list == "":
		return nil, nil
	case unsigned:
		s = nil
	case s.File == "" || s.AllowedSigners == "" || s.Principal == "" || f.list == "":
		return nil, usageError("give --fingerprints FILE --signed FILE.sig --allowed-signers FILE --principal NAME", "a signed list needs all four flags")
	}
	return scan.Open(ctx, f.list, s)
}

func (f *scanFlags) run(ctx context.Context, sys System) error {
	drain, hard, stop := interruptsSaying(ctx, sys, "stopping")
	defer stop()
	err := route.CheckFlags(f.connection.Flags)
	if err != nil {
		return err
	}
	list, err := f.open(drain)
	if err != nil {
		return interrupted(drain, err)
	}
	p := reach.Params{Params: f.connection.params(sys), Engine: reach.Native, KeysOnly: true}
	p.ConnectTimeout, p.Strict, p.Warnings, p.DNS = time.Duration(f.connectTimeout), true, sys.Stderr, sshfp.System(sys.Getenv)
	executor, err := reach.New(drain, p)
	if err != nil {
		return interrupted(drain, err)
	}
	defer executor.Close()
	hosts, err := f.selection.hosts(drain, sys, history.New(history.Dir(sys.Getenv)), executor.Router)
	if err == nil {
		err = executor.Check(drain, hosts)
	}
	if err != nil {
		return interrupted(drain, err)
	}
	defer fanout.Tune(sys.Getenv, fleet.Command{})()
	params := scan.Params{All: f.all, List: list, Fanout: f.fanout, RetryFor: time.Duration(f.retryFor), Drain: drain, Progress: terminal.NewProgress(sys.Stderr, "hosts").Report}
	report, err := scan.Run(hard, params, hosts, executor)
	report.Review(sys.Stderr)
	if err != nil || drain.Err() != nil {
		return interrupted(drain, ignoreCancel(err))
	}
	if err := f.record(sys, report); err != nil {
		return err
	}
	return report.Verdict()
}

// record writes or prints what was confirmed.
func (f *scanFlags) record(sys System, report scan.Report) error {
	looks := report.Looks()
	lines, err := reach.Lines(looks)
	if err != nil {
		return err
	}
	if f.json {
		err = report.WriteJSON(sys.Stdout, lines)
	} else if !f.write {
		for _, line := range lines {
			if _, err := fmt.Fprintln(sys.Stdout, line); err != nil {
				return err
			}
		}
	}
	if err != nil || !f.write {
		return err
	}
	added, err := reach.Record(looks)
	for _, file := range slices.Sorted(maps.Keys(added)) {
		fmt.Fprintf(sys.Stderr, "sshpace: added %s to %s\n", unit.Count(added[file], "line"), oneLine(file))
	}
	return err
}
