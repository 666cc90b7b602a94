package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/fanout"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fanout/sudo"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/safedir"
)

// workFlags are those of `sshpace work`.
type workFlags struct {
	hubFlags
	connection      connectionFlags
	pool, name      string
	lease           seconds
	signers, limits string
	fanout          int
	password        string // command that prints it
	quiet           bool
}

// A launcher says three times in a lease that it lives, and clients expect that twice a minute.
const (
	shortestLease = 3 * time.Second
	longestLease  = 90 * time.Second
)

func newWorkCommand(sys System) *cobra.Command {
	f := workFlags{lease: seconds(job.UsualLease)}
	cmd := page("work", &cobra.Command{
		Args: takes(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), sys) },
	})
	flags := cmd.Flags()
	f.hubFlags.register(flags)
	f.connection.register(flags)
	flags.StringVar(&f.pool, "pool", "", "the pool of hosts that this launcher reaches")
	flags.StringVar(&f.name, "name", "", "`NAME` of this launcher, the only one of that name in its pool (default that of this machine)")
	flags.Var(&f.lease, "lease", "give batches to other launchers when this one has not been heard of for this time")
	flags.StringVar(&f.signers, "allowed-signers", "", "file of the keys that may sign jobs, see ALLOWED SIGNERS in ssh-keygen(1) (default ~/.config/sshpace/allowed_signers)")
	flags.StringVar(&f.limits, "limits", "", "TOML file of what each signer may do; those that it does not name are refused")
	flags.IntVarP(&f.fanout, "fanout", "f", 0, "limit of parallel connections; 0 = as many as the servers and this machine can handle")
	flags.StringVar(&f.password, "password-command", "", "read the password from the first line that this command prints, by sh")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress, only errors")
	return cmd
}

func (f *workFlags) run(ctx context.Context, sys System) error {
	if err := sys.needHub(); err != nil {
		return err
	}
	launcher, err := f.launcher(sys)
	if err != nil {
		return err
	}
	defer outlive()()
	drain, hard, stop := interruptsSaying(ctx, sys, "taking no more hosts, and waiting for those that run; press Ctrl-C again to leave them")
	defer stop()
	e, err := reach.New(drain, reach.Params{Params: f.connection.params(sys)}) // a mistake in ssh_config is one of all jobs
	if err != nil {
		return interrupted(drain, err)
	}
	launcher.Room = fanout.NewRoom(f.fanout, e.FDs())
	e.Close()
	defer fanout.Tune(sys.Getenv, fleet.Command{})()
	if launcher.Bus, err = f.bus(drain, sys, f.connection, job.LauncherRole(f.pool)); err != nil {
		return interrupted(drain, err)
	}
	defer launcher.Bus.Close()
	return interrupted(drain, ignoreCancel(launcher.Run(drain, hard)))
}

// launcher checks the flags.
func (f *workFlags) launcher(sys System) (l job.Launcher, err error) {
	switch {
	case !f.given():
		return l, usageError("such as --hub ssh://HOST, or --hub unix", "no hub given")
	case f.pool == "":
		return l, usageError("such as --pool web", "no pool given")
	case time.Duration(f.lease) < shortestLease || time.Duration(f.lease) > longestLease:
		return l, usageError(fmt.Sprintf("give one from %s to %s", shortestLease, longestLease), "--lease %s", time.Duration(f.lease))
	}
	if f.name == "" {
		name, _ := os.Hostname()
		f.name, _, _ = strings.Cut(name, ".")
	}
	if err := cmp.Or(job.CheckName("pool", f.pool), job.CheckName("launcher", f.name), route.CheckFlags(f.connection.Flags)); err != nil {
		return l, err
	}
	state := safedir.State(sys.Getenv)
	if state == "" {
		return l, withHint(errors.New("no directory for the launcher is known"), "set HOME")
	}
	l = job.Launcher{
		Pool: f.pool, Name: f.name, Version: Version, Lease: time.Duration(f.lease), State: filepath.Join(state, "work", f.pool, f.name),
		Open: func(ctx context.Context, s *job.Spec) (fleet.Executor, func(), error) { return f.executor(ctx, sys, s) },
		Say: func(text string) {
			if !f.quiet {
				sys.screen().Notice("sshpace: " + text)
			}
		},
	}
	if l.Policy.AllowedSigners, err = f.allowed(sys); err != nil {
		return l, err
	}
	if f.limits != "" {
		l.Policy.Limits, err = job.LoadLimits(f.limits)
	}
	return l, err
}

// allowed returns the file of those who may sign, which nobody else can change.
func (f *workFlags) allowed(sys System) (path string, err error) {
	const hint = "write one line for each: alice@example.com ssh-ed25519 AAAA..."
	if path = f.signers; path == "" {
		path = filepath.Join(safedir.Config(sys.Getenv), "allowed_signers")
	}
	if path, err = filepath.Abs(path); err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err == nil {
		path, err = safedir.ResolveFile(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", usageError(hint, "%s does not exist: nobody may sign jobs for this launcher", path)
	case err != nil:
		return "", err
	case info.Mode().Perm()&0o022 != 0:
		return "", usageError("chmod go-w "+path, "others can write to %s, which says who may sign jobs", path)
	}
	_, err = openssh.Beside("ssh-keygen")
	return path, err
}

// executor runs the commands of a job, as ssh_config of this machine says, with its own keys and
// known hosts.
func (f *workFlags) executor(ctx context.Context, sys System, s *job.Spec) (fleet.Executor, func(), error) {
	engine := cmp.Or(reach.Engine(s.Engine), reach.Auto)
	if !slices.Contains([]reach.Engine{reach.Auto, reach.Native, reach.OpenSSH}, engine) {
		return nil, nil, fmt.Errorf("engine %q is unknown here", s.Engine)
	}
	if err := sudo.CheckUser(s.Sudo); err != nil {
		return nil, nil, err
	}
	p := reach.Params{Params: f.connection.params(sys), Engine: engine, NoKillSession: s.NoRemoteKill}
	p.ConnectTimeout, p.Command = time.Duration(s.ConnectTimeoutNS), cmp.Or(s.Text, s.Line)
	e, err := reach.New(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	done := func() { e.Close() }
	if s.Sudo == "" {
		return e, done, nil
	}
	ask := func(ctx context.Context) (string, error) {
		if f.password == "" {
			return "", errNoPassword
		}
		return sudo.PasswordFrom(ctx, f.password, sys.Stderr)
	}
	return &sudo.Executor{Executor: e, User: s.Sudo, Password: sudo.AskFor(ask)}, done, nil
}

var errNoPassword = errors.New("sudo asks for a password, and the launcher has none: NOPASSWD, or --password-command of sshpace work")
