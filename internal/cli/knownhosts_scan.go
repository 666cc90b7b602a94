package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/scan"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/sshfp"
	"sshpace/internal/sys/terminal"
)

// scanFlags are the flags of `sshpace known-hosts scan`.
type scanFlags struct {
	lookFlags
	all       bool
	list      string
	signature scan.Signature
	write     bool
}

func newKnownHostsScanCommand(sys System) *cobra.Command {
	var f scanFlags
	cmd := f.command(sys, "known-hosts-scan", "key exchange", f.run)
	flags := cmd.Flags()
	flags.BoolVar(&f.all, "all-types", false, "ask for a key of each type, one connection each, not only for the one that a login would see")
	flags.StringVar(&f.list, "fingerprints", "", "file of fingerprints to trust, one a line: HOST SHA256:..., or as ssh-keygen -lf prints them")
	flags.StringVar(&f.signature.File, "signed", "", "signature of that file by ssh-keygen -Y sign; without a valid one nothing is done")
	flags.StringVar(&f.signature.AllowedSigners, "allowed-signers", "", "file of the keys that may sign, see ALLOWED SIGNERS in ssh-keygen(1)")
	flags.StringVar(&f.signature.Principal, "principal", "", "name of the signer in that file")
	flags.BoolVar(&f.write, "write", false, "write the lines of confirmed keys into your known_hosts file instead of printing them")
	flags.BoolVar(&f.json, "json", false, "print all keys as JSON")
	return cmd
}

// trusted reads the list that confirms keys, nil if none is given.
func (f *scanFlags) trusted(ctx context.Context) (*scan.List, error) {
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
	list, err := f.trusted(drain)
	if err != nil {
		return interrupted(drain, err)
	}
	p := reach.Params{KeysOnly: true}
	p.Strict, p.Warnings, p.DNS = true, sys.Stderr, sshfp.System(sys.Getenv)
	hosts, executor, err := f.open(drain, sys, p)
	if err != nil {
		return interrupted(drain, err)
	}
	defer executor.Close()
	defer fanout.Tune(sys.Getenv, fleet.Command{})()
	params := scan.Params{All: f.all, List: list, Fanout: f.params(drain), Progress: terminal.NewProgress(sys.Stderr, "hosts").Report}
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
