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
	os.Exit(cli.Main(context.Background(), knowing(cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals}), os.Args))
}

// knowing adds what only this program knows.
func knowing(sys cli.System) cli.System {
	sys.Hub = hub.NATS{}
	sys.Page = func(ctx context.Context, p cli.Page) error { return page.Serve(ctx, page.Params(p)) }
	return sys
}
