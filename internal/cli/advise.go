package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"sshpace/internal/bench/apply"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/prove"
	"sshpace/internal/bench/rank"
	"sshpace/internal/fleet"
	"sshpace/internal/record/store"
	"sshpace/internal/show/findings"
	"sshpace/internal/show/format"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/safedir"
)

type adviseFlags struct {
	foundFlags
	endFlags
	policy, pattern, sshdConfig string
	insecure, quiet             bool
	prove, strict               bool
	length                      roundFlags
	size                        byteLimit
	write, undo                 string
	hosts, modes                []string
}

func newAdviseCommand(sys System) *cobra.Command {
	f := adviseFlags{size: 128 << 20}
	cmd := page("advise", &cobra.Command{
		Args: takes(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"rounds", "budget", "quiet", "size", "only", "connect-timeout"} {
				if cmd.Flags().Changed(name) && !f.prove && (name != "connect-timeout" || len(f.hosts) == 0) {
					return usageError("add --prove", "--%s is for --prove only", name)
				}
			}
			if f.undo != "" {
				return f.takeBack(cmd, sys)
			}
			return runAdvise(cmd.Context(), sys, f, args)
		},
	})
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "modern", "security policy: a name such as modern or fips-140-3, or a TOML file")
	flags.StringVar(&f.pattern, "host", "", "pattern of the Host line (default: the host; required to --write a loopback result)")
	flags.BoolVar(&f.insecure, "include-insecure", false, "also list choices that are faster but never advised")
	flags.BoolVar(&f.strict, "strict", false, "closed lists: refuse all other algorithms")
	f.foundFlags.register(flags)
	flags.BoolVar(&f.prove, "prove", false, "measure the present and the advised choice in turns")
	f.length.register(flags, prove.DefaultRounds)
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "with --prove: show no progress")
	flags.Var(&f.size, "size", "with --prove: bytes that each method moves")
	flags.StringSliceVar(&f.modes, "only", nil, "with --prove: methods besides the raw transfer, named as in sshpace transfer --only (default: scp, sftp)")
	flags.StringVar(&f.write, "write", "", "write the lines: client, server or both")
	flags.StringVar(&f.undo, "undo", "", "remove the lines that --write wrote: client, server or both; later edits stay")
	flags.StringSliceVar(&f.hosts, "check", nil, "hosts that must stay reachable, checked by logging in; repeatable")
	f.endFlags.register(flags, fleet.ConnectTimeout)
	flags.Lookup("connect-timeout").Usage = "with --prove and --check: time allowed for a connection"
	flags.StringVar(&f.sshdConfig, "sshd-config", "", "sshd_config to read and write (default: sshd's own)")
	f.connection.register(flags)
	completeResults(cmd, sys)
	completePolicies(cmd)
	return cmd
}

func (f adviseFlags) check() error {
	if f.JSON && (f.write != "" || len(f.hosts) > 0) {
		return usageError("run it twice", "--json is for the advice, or with --prove for the proof, alone")
	}
	_, err := f.length.of(2)
	return cmp.Or(apply.Params{Sides: f.write, Hosts: f.hosts, Pattern: f.pattern}.Check(), f.Check(), err)
}

// takeBack carries out --undo: it removes the lines that --write has added.
func (f adviseFlags) takeBack(cmd *cobra.Command, sys System) error {
	for _, arg := range cmd.Flags().Args() {
		destination, err := route.Destination(f.connection.Flags, cmp.Or(store.Of(sys.Getenv).Host(arg), arg))
		if err != nil {
			return err
		}
		f.pattern = cmp.Or(f.pattern, destination.Host)
	}
	drain, _, stop := interrupts(cmd.Context(), sys)
	defer stop()
	return interrupted(drain, withDir(sys, safedir.WorkdirParams{}, func(dir *safedir.Workdir) error {
		return apply.Undo(drain, f.params(sys, dir))
	}))
}

// params selects the lines to change, and how.
func (f adviseFlags) params(sys System, dir *safedir.Workdir) apply.Params {
	return apply.Params{
		Params: f.endFlags.params(sys), Policy: f.policy, Strict: f.strict, Pattern: f.pattern, Sides: cmp.Or(f.undo, f.write), SSH: f.ssh, SSHD: f.sshd, SSHDConfig: f.sshdConfig,
		Usual: f.usual, Hosts: f.hosts, Before: f.prove && f.write == "", Dir: dir, Out: sys.Stdout, Notes: sys.Stderr,
	}
}

func runAdvise(ctx context.Context, sys System, f adviseFlags, args []string) error {
	if err := f.check(); err != nil {
		return err
	}
	path, err := f.result(sys, args)
	if err != nil {
		return err
	}
	ranking, err := compare.RankFile(path, rank.Auto)
	if err != nil {
		return err
	}
	if len(ranking.Bulk) == 0 {
		return usageError("measure with sshpace bench", "%s contains no cipher ranking", path)
	}
	drain, ctx, stop := interrupts(ctx, sys) // not before: the result may be a pipe that nobody writes to
	defer stop()
	return interrupted(drain, withDir(sys, safedir.WorkdirParams{}, func(dir *safedir.Workdir) error {
		p := f.params(sys, dir)
		p.Ranking = ranking
		advised, err := apply.New(drain, p)
		if err == nil {
			err = advised.Check(drain)
		}
		if err != nil {
			return err
		}
		fmt.Fprintf(sys.Stderr, "advice from %s\n", path)
		if err := f.show(sys, advised, path, len(args) == 0); err != nil {
			return err
		}
		return f.carryOut(ctx, drain, sys, advised)
	}))
}

// result returns the file that the advice is made of: the newest one, or that of a host.
func (f adviseFlags) result(sys System, args []string) (string, error) {
	results := store.Of(sys.Getenv)
	if len(args) == 0 {
		return results.NewestRanking()
	}
	return results.Find(args[0], f.connection.label, store.Ranks)
}

// show prints the advice.
func (f adviseFlags) show(sys System, a *apply.Advised, path string, newest bool) error {
	view := findings.Advice{Advice: a.Advice, Ranking: a.Ranking, Pattern: a.Pattern, Strict: f.strict, Insecure: f.insecure, Checked: a.HasServer()}
	view.Commands = format.Commands(store.Of(sys.Getenv), path, newest, f.policy, f.connection.Options()...)
	view.Brief, view.Written, view.Applied = f.prove && f.write == "", f.write != "", a.Applied
	view.Server = f.strict || f.write == "server" || f.write == "both"
	switch {
	case !f.prove:
		return f.foundFlags.show(sys, view.Text, view.JSON)
	case f.JSON: // the proof is all that is printed
		return nil
	}
	return view.Text(sys.Stdout)
}

// carryOut checks the advice with hosts, proves it and writes it, as the flags say.
func (f adviseFlags) carryOut(ctx, drain context.Context, sys System, a *apply.Advised) error {
	err := a.CheckNow(drain)
	if err == nil && f.write == "" { // otherwise the written lines are checked
		err = a.CheckPrinted(drain)
	}
	if err == nil && f.prove {
		err = f.measure(ctx, drain, sys, a)
	}
	if err != nil || drain.Err() != nil {
		return err
	}
	return a.Write(drain) // a check that is interrupted has failed: nothing is changed
}
