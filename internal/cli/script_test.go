package cli_test

import (
	"context"
	"flag"
	"os"
	"os/signal"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sshpace/internal/cli"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/sys/proc"
)

var update = flag.Bool("update", false, "rewrite the expected output of the scripts")

func TestMain(m *testing.M) {
	program := func() {
		sys := cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals}
		os.Exit(cli.Main(context.Background(), sys, os.Args))
	}
	withHubs := func() {
		sys := cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals, Hub: hub.NATS{}}
		os.Exit(cli.Main(context.Background(), sys, os.Args))
	}
	programs := map[string]func(){"sshpace": program, "sshpace-hub": withHubs, "slownames": serveSlowNames, "deafport": listenDeaf, "connectto": connectTo}
	for _, name := range []string{"mpssh.py", "mpssh", "parallel-ssh", "parallel-scp", "parallel-slurp", "parallel-nuke", "parallel-rsync", "pdsh", "clush"} {
		programs[name] = program
	}
	testscript.Main(heeding{m}, programs)
}

// heeding runs tests whose programs begin with no signal ignored, as they do under nohup(1) and
// behind a & of a shell without job control: what is caught here is not ignored there.
type heeding struct{ *testing.M }

func (h heeding) Run() int {
	for _, end := range endings {
		if signal.Ignored(end.signal) {
			signal.Notify(make(chan os.Signal, 1), end.signal)
		}
	}
	return h.M.Run()
}

// TestScripts runs the sessions of testdata/script, named command_case.txtar.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, scripts("testdata/script"))
}

// TestQuietScripts runs the sessions of testdata/quiet, one after the other: what they measure must
// not wait for a core that another uses.
func TestQuietScripts(t *testing.T) {
	all := scripts("testdata/quiet")
	files, err := os.ReadDir(all.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		one := all
		one.Dir, one.Files = "", []string{filepath.Join(all.Dir, f.Name())}
		t.Run("alone", func(t *testing.T) { testscript.Run(t, one) }) // the scripts of a Run run beside each other
	}
}

func scripts(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup:               setupServers,
		Cmds:                serverCommands(),
	}
}
