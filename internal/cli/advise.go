package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/measure/loopback"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/advice"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/workdir"
	"sshpace/internal/verdict/advise"
	"sshpace/internal/verdict/apply"
	"sshpace/internal/verdict/choice"
	"sshpace/internal/verdict/rank"
	"sshpace/internal/verdict/result"
)

// adviseFlags are the flags of `sshpace advise`.
type adviseFlags struct {
	policy, pattern, ssh, sshd, sshdConfig string
	insecure, json                         bool
	prove, strict                          bool
	rounds                                 int
	size                                   string
	connect                                seconds
	write                                  string
	hosts, modes                           []string
	connection                             connectionFlags
}

func newAdviseCommand(sys System) *cobra.Command {
	f := adviseFlags{connect: seconds(15 * time.Second)}
	cmd := &cobra.Command{
		Use:   "advise [FILE | [user@]host]",
		Short: "Say what to configure: the fastest that a security policy allows, and prove it",
		Long: `Turns a result of bench into lines for ssh_config and sshd_config: of what the policy
allows, the fastest first, each with its reason; and says what that gains against the
present configuration, or that the choice does not matter here.

The lines put what is advised first (^) and leave all else enabled, so that no host is
cut off. --strict closes the lists: what is not advised is refused, on all hosts that
match; for a result of loopback it needs --host.

What is weak, broken, unknown, or open to Terrapin is never advised. Without an
argument the newest result is used; with a host, the newest result of that host.

--prove measures the present and the advised choice in turns: a raw transfer, and
what people do (--mode, as in bench), whose MB/s include the login. --write puts the lines into a file, shows
the change, keeps a copy, checks the result with ssh and sshd, and prints how to undo it.
As ssh does, --write client takes the home of the user database, not $HOME; -F names
another file.

--check negotiates with hosts that you name, before and after, by your own ssh: no login,
no password, no key. If one that is reached now would not be reached any more, nothing is
written, and the exit code is 1.`,
		Example: `  sshpace advise
  sshpace advise --policy ssh-audit-hardened result.jsonl
  sshpace advise --prove
  sshpace advise nas --write client
  sshpace advise --write client --check nas,backup`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, name := range []string{"rounds", "size", "mode", "connect-timeout"} {
				checks := name == "connect-timeout" && len(f.hosts) > 0
				if cmd.Flags().Changed(name) && !f.prove && !checks {
					return usageError("add --prove", "--%s is for --prove only", name)
				}
			}
			return runAdvise(cmd.Context(), sys, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.policy, "policy", "modern", "security policy: a name such as modern or fips-140-3, or a TOML file")
	flags.StringVar(&f.pattern, "host", "", "pattern of the Host line (default: the host, or * for a result of loopback)")
	flags.BoolVar(&f.insecure, "include-insecure", false, "also list what is faster but never advised")
	flags.BoolVar(&f.strict, "strict", false, "closed lists: refuse all that is not advised")
	flags.BoolVar(&f.json, "json", false, "print the advice as JSON")
	flags.BoolVar(&f.prove, "prove", false, "measure the present and the advised choice in turns")
	flags.IntVar(&f.rounds, "rounds", 8, "with --prove: rounds; 6 or more for a 95 % interval")
	flags.StringVar(&f.size, "size", "128M", "with --prove: bytes that each way moves")
	flags.StringSliceVar(&f.modes, "mode", nil, "with --prove: what people do, as in bench --mode, beside the raw transfer (default: scp, sftp)")
	flags.StringVar(&f.write, "write", "", "write the lines: client, server or both")
	flags.StringSliceVar(&f.hosts, "check", nil, "hosts that must stay reachable; nobody logs in there; repeatable")
	flags.StringVar(&f.ssh, "ssh", "", "path of ssh")
	flags.StringVar(&f.sshd, "sshd", "", "path of sshd")
	flags.StringVar(&f.sshdConfig, "sshd-config", "", "sshd_config to read and write (default: sshd's own)")
	flags.Var(&f.connect, "connect-timeout", "with --prove and --check: how long a connection may take")
	f.connection.register(flags)
	return cmd
}

func (f adviseFlags) check() error {
	switch {
	case !slices.Contains([]string{"", "client", "server", "both"}, f.write):
		return usageError("use client, server or both", "--write %q", f.write)
	case f.rounds < 2 || f.connect <= 0:
		return usageError("such as --rounds 8", "--rounds must be 2 or more, and --connect-timeout longer than nothing")
	case len(f.hosts) > 0 && f.write == "server":
		return usageError("leave --check out", "--check is for the client's lines")
	case f.json && (f.write != "" || f.prove || len(f.hosts) > 0):
		return usageError("run it twice", "--json is for the advice alone")
	case strings.ContainsFunc(f.pattern, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune("\"'#=\\", r) }):
		return usageError("such as --host 'nas*'", "--host %q is no pattern of ssh_config", f.pattern)
	}
	if _, err := unit.ParseBytes(f.size); err != nil {
		return usageError("such as --size 128M", "--%s", err)
	}
	return nil
}

// adviser is everything that the parts of the command share.
type adviser struct {
	flags       adviseFlags
	sys         System
	path        string // of the result
	ranking     *rank.Ranking
	params      advise.Params
	advice      *advise.Advice
	ssh, sshd   openssh.Program // sshd.Path "" where there is none, or the server is another machine
	destination openssh.Destination
	dir         *workdir.Dir
	hostKey     string // of a one-run pair, which sshd -t and -T insist on
}

func runAdvise(ctx context.Context, sys System, f adviseFlags, args []string) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	drain, ctx, stop := interrupts(ctx, sys)
	defer stop()
	a := &adviser{flags: f, sys: sys}
	if err := a.load(args); err != nil {
		return err
	}
	if a.dir, err = privateDir(sys); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.dir.Close()) }()
	if err := a.decide(ctx); err != nil {
		return interrupted(drain, err)
	}
	advised := a.advised()
	if err := advised.Check(ctx); err != nil {
		return interrupted(drain, err)
	}
	fmt.Fprintf(sys.Stderr, "advice from %s\n", a.path)
	view := advice.View{Advice: a.advice, Ranking: a.ranking, Pattern: a.pattern(), Strict: f.strict, Insecure: f.insecure, Checked: a.sshd.Path != ""}
	if f.json {
		if err := view.JSON(sys.Stdout); err != nil {
			return err
		}
	} else {
		view.Text(sys.Stdout)
	}
	err = advised.CheckNow(ctx)
	if err == nil && f.write == "" { // else what is written is checked
		err = advised.CheckPrinted(ctx)
	}
	if err != nil {
		return interrupted(drain, err)
	}
	if f.prove {
		if err := a.prove(ctx, drain); err != nil {
			return interrupted(drain, err)
		}
	}
	if f.write != "" && drain.Err() == nil {
		err = a.write(ctx, advised)
	}
	return interrupted(drain, err)
}

// load finds and ranks the result.
func (a *adviser) load(args []string) error {
	path := ""
	switch {
	case len(args) == 0:
		newest, err := store.Of(a.sys.Getenv).Newest()
		if err != nil {
			return err
		}
		path = newest
	case isFile(args[0]):
		path = args[0]
	default:
		destination, err := a.flags.connection.Destination(args[0])
		if err != nil {
			return err
		}
		if path = store.Of(a.sys.Getenv).NewestOf(destination.Label); path == "" {
			return usageError("measure it first: sshpace bench "+destination.Label, "there is no result of %s", destination.Label)
		}
	}
	r, err := result.File(path, rank.Auto)
	if err != nil {
		return err
	}
	if a.flags.strict && a.flags.pattern == "" && r.Campaign.Server != record.ServerRemote {
		return usageError("name the hosts with --host, such as --host nas or --host '*'",
			"a result of loopback says nothing of other hosts: --strict may cut them off")
	}
	if len(r.Bulk) == 0 {
		return usageError("measure with sshpace bench", "%s ranks no cipher", path)
	}
	a.ranking = r
	a.path = path
	return a.reach()
}

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil || strings.HasSuffix(name, ".jsonl")
}

// reach is how ssh would be told to go to the result's host; localhost for a
// result of loopback.
func (a *adviser) reach() (err error) {
	target := a.ranking.Campaign.Target
	if a.ranking.Campaign.Server != record.ServerRemote {
		a.destination = openssh.Destination{Host: "localhost", Label: target, Options: a.flags.connection.Options()}
		return nil
	}
	a.destination, err = a.flags.connection.Destination(target)
	return err
}

func (a *adviser) local() bool {
	return a.ranking.Campaign.Server != record.ServerRemote && a.ranking.Campaign.Imported == ""
}

// decide reads the present configuration and makes the advice.
func (a *adviser) decide(ctx context.Context) error {
	policy, err := choice.Load(a.flags.policy)
	if err != nil {
		return err
	}
	if a.ssh, err = openssh.FindClient(ctx, a.flags.ssh); err != nil {
		return withHint(err, "install openssh-client, or name its path with --ssh")
	}
	keys, err := loopback.MakeKeys(a.dir)
	if err != nil {
		return err
	}
	a.hostKey = keys.HostKey
	p := advise.Params{Ranking: a.ranking, Policy: policy, Strict: a.flags.strict}
	if p.Client, err = apply.ClientNow(ctx, a.ssh, apply.Probe(a.pattern()), a.destination.Options); err != nil {
		return withHint(err, "look at your ssh_config")
	}
	p.Server.Old = !choice.Prepends(a.ranking.Environment.Server)
	if a.local() {
		if a.sshd, p.Server, err = apply.ServerNow(ctx, a.flags.sshd, a.flags.sshdConfig, a.hostKey, a.sys.Stderr); err != nil {
			return err
		}
	}
	a.params = p
	a.advice, err = advise.New(p)
	if errors.Is(err, advise.ErrNothing) {
		return withHint(err, "choose another --policy, or measure more algorithms")
	}
	return err
}

// pattern is that of the Host line.
func (a *adviser) pattern() string {
	switch {
	case a.flags.pattern != "":
		return a.flags.pattern
	case a.ranking.Campaign.Server != record.ServerRemote:
		return "*"
	}
	return a.destination.Host
}

// advised is the advice with all that is needed to carry it out.
func (a *adviser) advised() *apply.Advised {
	return &apply.Advised{
		Advice: a.advice, Client: a.params.Client, Server: a.params.Server, Strict: a.flags.strict, Pattern: a.pattern(),
		SSH: a.ssh, SSHD: a.sshd, HostKey: a.hostKey, SSHDConfig: a.flags.sshdConfig, Connection: a.flags.connection.Connection,
		Connect: time.Duration(a.flags.connect), Hosts: a.flags.hosts, Dir: a.dir, Out: a.sys.Stdout,
	}
}

// write puts the advice into the files that --write names.
func (a *adviser) write(ctx context.Context, advised *apply.Advised) error {
	if a.flags.write != "server" {
		if err := advised.WriteClient(ctx); err != nil {
			return err
		}
	}
	switch {
	case a.flags.write == "client":
		return nil
	case a.sshd.Path == "":
		return usageError("copy the lines to the server and check them there with sshd -t", "the server is not this machine: nothing was written for sshd")
	}
	return advised.WriteServer(ctx)
}
