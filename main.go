// Command sshpace measures, explains and improves the speed of OpenSSH, and
// runs commands on whole fleets quickly.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sshpace/internal/cli"
)

func main() {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	sys := cli.System{Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Signals: signals}
	os.Exit(cli.Main(context.Background(), sys, os.Args))
}
