package cli

import (
	"context"
	"io"
	"os"
	"os/user"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/dropin"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/terminal"
)

func newCompatCommand(sys System) *cobra.Command {
	return page("compat", &cobra.Command{
		DisableFlagParsing: true, // they belong to the other program
		ValidArgs:          dropin.Names,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			if len(args) == 0 || dropin.Mode(args[0]) == nil {
				return usageError("the names are "+strings.Join(dropin.Names[:len(dropin.Names)-1], ", ")+" and "+dropin.Names[len(dropin.Names)-1], "compat needs the name of a known program")
			}
			return fault.Exit(runCompat(cmd.Context(), sys, dropin.Mode(args[0]), args[1:]))
		},
	})
}

// runCompat runs a mode; the first signal ends the run, a second one the process.
func runCompat(ctx context.Context, sys System, mode dropin.Main, args []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals, release := sys.Signals.Catch()
	defer release()
	go func() {
		select {
		case s := <-signals:
			if s == os.Interrupt {
				cancel(context.Canceled)
			} else {
				cancel(&dropin.Ended{Code: proc.ExitOf(s)})
			}
			release()
		case <-ctx.Done():
		}
	}()
	return mode(ctx, compatEnv(ctx, sys), args)
}

func compatEnv(ctx context.Context, sys System) dropin.Env {
	secrets := secretFlags{}
	env := dropin.Env{
		Stdin: sys.Stdin, Stdout: sys.Stdout, Stderr: sys.Stderr,
		StdoutTTY: terminal.Is(sys.Stdout), StderrTTY: terminal.Is(sys.Stderr),
		Getenv: sys.Getenv, User: sys.Getenv("USER"), Home: sys.Getenv("HOME"),
		Engine: func(sshArgs []string, hosts []host.Host) (fleet.Executor, func() error, error) {
			return compatEngine(ctx, sys, &secrets, sshArgs, hosts)
		},
		SSH: func(program string, sshArgs []string, argv func(h host.Host, command string) []string) (fleet.Executor, func() error, error) {
			connection, _ := parseSSHArgs(sshArgs)
			r, err := reach.New(ctx, reach.Params{Params: connection.params(sys), Engine: reach.OpenSSH, Program: program, Argv: argv})
			if err != nil {
				return nil, nil, err
			}
			return r, r.Close, nil
		},
		AskPass: func() { secrets.Ask = true },
	}
	env.Hostname, _, _ = strings.Cut(hostname(), ".")
	if me, err := user.Current(); err == nil { // the account decides, as in the originals
		env.User = me.Username
	}
	return env
}

// hostname returns this machine's name.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// compatEngine returns the engine of run, or ssh itself where the other program would use an option
// that only ssh has; and a function that closes it.
func compatEngine(ctx context.Context, sys System, secrets *secretFlags, sshArgs []string, hosts []host.Host) (fleet.Executor, func() error, error) {
	connection, others := parseSSHArgs(sshArgs)
	engine := reach.Auto
	if len(others) > 0 {
		engine = reach.OpenSSH
	}
	p := reach.Params{Params: connection.params(sys), Engine: engine, SSHOptions: others}
	p.Warnings = sys.Stderr
	if password := secrets.Login(); password != nil {
		p.Password = password
	}
	r, err := reach.New(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	r.Warm(ctx, hosts)
	executor, err := secrets.Over(ctx, sys.screen(), r)
	return executor, r.Close, err
}

// parseSSHArgs parses options as ssh takes them, each with its value in the same argument. others
// are those that run does not have, except for -T, which is its default, and -q: the mode prints
// messages about hosts, and a quiet ssh would not report its progress, either.
func parseSSHArgs(args []string) (c connectionFlags, others []string) {
	flags := pflag.NewFlagSet("ssh", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.register(flags)
	for _, arg := range args {
		for _, option := range openssh.SplitOptions(arg, openssh.WithValue) {
			if option == "-q" || option == "-T" {
				continue
			}
			if err := flags.Parse([]string{option}); err != nil || flags.NArg() > 0 {
				others = append(others, option)
			}
		}
	}
	return c, others
}
