// Command sshpace-hub is sshpace with the hub of jobs: `sshpace hub` and all that reaches a hub
// continue as this program, so that every other command starts without what a hub needs.
package main

import (
	"context"
	"os"

	"sshpace/internal/cli"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/fanout/page"
	"sshpace/internal/sys/proc"
)

func main() {
	os.Exit(cli.Main(context.Background(), cli.System{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals, Hub: hub.NATS{}, Page: page.Serve,
	}, os.Args))
}
