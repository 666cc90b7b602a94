package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"sshpace/internal/ssh/oldserver"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// helperPrograms are what sshpace starts itself as during a measurement. They
// are no commands for people and do without the command tree, so that they
// start in a moment.
var helperPrograms = map[string]func(ctx context.Context, args []string) (exit int, err error){
	"flow": flowProgram,
	"keep": func(_ context.Context, args []string) (int, error) {
		if len(args) != 1 {
			return 2, errors.New("keep: want a directory")
		}
		proc.IgnoreSignals() // its end is that of its input
		return 1, safedir.Keep(args[0], os.Stdin)
	},
	"native-server": server(wire.ServeOne),
	"native-client": wire.ClientMain,
	"old-server":    server(oldserver.ServeOne),
}

// server serves one connection, which is its standard input.
func server(serve func(socket *os.File, hostKey, authorizedKeys, home string) error) func(context.Context, []string) (int, error) {
	return func(_ context.Context, args []string) (int, error) {
		if len(args) != 3 {
			return 2, errors.New("want host key, authorized keys and home")
		}
		return 1, serve(os.Stdin, args[0], args[1], args[2])
	}
}

// helperMark is the first argument that leads to a helper program.
const helperMark = "--helper"

// helper is the command line of a helper program of this executable.
func helper(program string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return []string{self, helperMark, program}
}

// runHelper runs a helper program if args ask for one.
func runHelper(ctx context.Context, sys System, args []string) (exit int, ran bool) {
	if len(args) < 3 || args[1] != helperMark {
		return 0, false
	}
	program, ok := helperPrograms[args[2]]
	if !ok {
		return conclude(sys.Stderr, usageError("it is for sshpace's own use", "unknown helper %q", args[2])), true
	}
	exit, err := program(ctx, args[3:])
	if err == nil && args[2] != "native-client" {
		exit = 0
	}
	if err != nil {
		fmt.Fprintf(sys.Stderr, "sshpace: error: %s\n", oneLine(err.Error()))
	}
	return exit, true
}
