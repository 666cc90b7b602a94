package cli

import (
	"context"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/compat"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/terminal"
)

// compatMain is a drop-in mode: a whole program under another name.
type compatMain func(ctx context.Context, env compat.Env, args []string) int

// compatMode is the mode for a program name, nil for our own.
func compatMode(program string) compatMain {
	name := filepath.Base(program)
	if mode := compatModes[name]; mode != nil {
		return mode
	}
	for _, beginning := range []string{"parallel-", "p"} { // as Debian calls them, and as their authors do
		tool, ok := strings.CutPrefix(name, beginning)
		if ok && slices.Contains(psshTools, tool) {
			return func(ctx context.Context, env compat.Env, args []string) int {
				return compat.PsshMain(ctx, env, tool, name, args)
			}
		}
	}
	return nil
}

var compatModes = map[string]compatMain{"pdsh": compat.PdshMain, "dshbak": compat.DshbakMain, "mpssh": compat.MpsshMain, "mpssh.py": compat.PyMain}

var psshTools = []string{"ssh", "scp", "slurp", "nuke"}

// compatNames are the programs that there are modes for.
var compatNames = []string{"pssh", "pscp", "pslurp", "pnuke", "pdsh", "dshbak", "mpssh", "mpssh.py"}

func newCompatCommand(sys System) *cobra.Command {
	return page("compat", &cobra.Command{
		DisableFlagParsing: true, // they belong to the other program
		ValidArgs:          compatNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && (args[0] == "-h" || args[0] == "--help") {
				return cmd.Help()
			}
			if len(args) == 0 || compatMode(args[0]) == nil {
				return usageError("the names are "+strings.Join(compatNames[:len(compatNames)-1], ", ")+" and "+compatNames[len(compatNames)-1], "compat needs the name of a known program")
			}
			if code := runCompat(cmd.Context(), sys, compatMode(args[0]), args[1:]); code != ExitOK {
				return exitWith(code)
			}
			return nil
		},
	})
}

// runCompat runs a mode; the first signal ends the run, a second one the process.
func runCompat(ctx context.Context, sys System, mode compatMain, args []string) int {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	signals, release := sys.signals()
	defer release()
	go func() {
		select {
		case s := <-signals:
			if s == os.Interrupt {
				cancel(context.Canceled)
			} else {
				cancel(&compat.Ended{Code: ends[s]})
			}
			release()
		case <-ctx.Done():
		}
	}()
	return mode(ctx, compatEnv(ctx, sys), args)
}

func compatEnv(ctx context.Context, sys System) compat.Env {
	secrets := secretFlags{}
	env := compat.Env{
		Stdin: sys.Stdin, Stdout: sys.Stdout, Stderr: sys.Stderr,
		StdoutTTY: terminal.Is(sys.Stdout), StderrTTY: terminal.Is(sys.Stderr),
		User: sys.Getenv("USER"), Home: sys.Getenv("HOME"),
		LookPath: exec.LookPath, Getenv: sys.Getenv,
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
		AskPass: func() { secrets.ask = true },
		Program: func(path string, argv func(h host.Host, command string) []string) fleet.Executor {
			return forkssh.New(forkssh.Options{Binary: path, Argv: argv})
		},
	}
	env.Hostname, _, _ = strings.Cut(hostname(), ".")
	if me, err := user.Current(); err == nil { // the account decides, as in the originals
		env.User = me.Username
	}
	return env
}

// hostname is what this machine calls itself.
func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}

// compatEngine is the engine of run, or ssh itself where the other program would
// use an option that only ssh has.
func compatEngine(ctx context.Context, sys System, secrets *secretFlags, sshArgs []string, hosts []host.Host) (fleet.Executor, func() error, error) {
	connection, others := parseSSHArgs(sshArgs)
	engine := reach.Auto
	if len(others) > 0 {
		engine = reach.OpenSSH
	}
	p := reach.Params{Params: connection.params(sys), Engine: engine, SSHOptions: others}
	p.Warnings, p.Password = sys.Stderr, secrets.password()
	r, err := reach.New(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	r.Warm(ctx, hosts)
	executor, err := secrets.executor(ctx, sys, r)
	return executor, r.Close, err
}

// parseSSHArgs reads options as ssh takes them, each with its value in the same
// argument. others are those that run does not have.
func parseSSHArgs(args []string) (c connectionFlags, others []string) {
	flags := pflag.NewFlagSet("ssh", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	c.register(flags)
	for _, arg := range args {
		for _, option := range splitOptions(arg) {
			if err := flags.Parse([]string{option}); err != nil || flags.NArg() > 0 {
				others = append(others, option)
			}
		}
	}
	return c, others
}

// sshSwitches are the options of ssh(1) that take no value.
const sshSwitches = "1246AaCfGgKkMNnqsTtVvXxYy"

// splitOptions takes the switches before an option off it: -Cp22 is -C and -p22.
func splitOptions(arg string) []string {
	var options []string
	for len(arg) > 2 && arg[0] == '-' && strings.IndexByte(sshSwitches, arg[1]) >= 0 {
		options = append(options, arg[:2])
		arg = "-" + arg[2:]
	}
	if len(arg) > 2 { // ssh_config(5) allows the blank in "-o Name=value", ssh's getopt in all
		arg = arg[:2] + strings.TrimLeft(arg[2:], " \t")
	}
	return append(options, arg)
}
