// Command sshpace measures, explains and improves the speed of OpenSSH, and
// runs commands on whole fleets quickly.
package main

import (
	"context"
	"os"

	"sshpace/internal/cli"
	"sshpace/internal/sys/proc"
)

func main() {
	sys := cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: proc.CatchSignals}
	os.Exit(cli.Main(context.Background(), sys, os.Args))
}
