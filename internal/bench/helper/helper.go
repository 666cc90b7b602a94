// Package helper holds the programs that sshpace starts itself as during a measurement. They are
// not commands for people and do without the command tree, so that they start in a moment.
package helper

import (
	"context"
	"fmt"
	"io"
	"os"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/wire"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Programs are programs by their names.
type Programs map[string]func(ctx context.Context, args []string) (exit int, err error)

var own = Programs{
	"flow": flowProgram, // at the ends of a measured connection
	"keep": Taking(1, func(args []string) error {
		proc.IgnoreSignals() // it ends with its input
		return safedir.Keep(args[0], os.Stdin)
	}),
	"native-server": Taking(3, func(args []string) error { return wire.ServeOne(os.Stdin, args[0], args[1], args[2]) }),
	"native-client": wire.ClientMain,
}

// Taking returns a program with that many arguments, which exits with 1 when it fails.
func Taking(count int, run func(args []string) error) func(context.Context, []string) (int, error) {
	return func(_ context.Context, args []string) (int, error) {
		if len(args) != count {
			return 2, fmt.Errorf("want %d arguments", count)
		}
		if err := run(args); err != nil {
			return 1, err
		}
		return 0, nil
	}
}

// mark is the first argument that leads to a helper program.
const mark = "--helper"

// Line returns the command line of a helper program of this executable.
func Line(program string) []string {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return []string{self, mark, program}
}

// Run runs the helper program, own or one of others, that the arguments of this executable select;
// ran reports whether they select one.
func Run(ctx context.Context, args []string, stderr io.Writer, others Programs) (exit int, ran bool) {
	if len(args) < 3 || args[1] != mark {
		return 0, false
	}
	exit, err := 2, fmt.Errorf("unknown helper %q", args[2])
	run := own[args[2]]
	if run == nil {
		run = others[args[2]]
	}
	if run != nil {
		exit, err = run(ctx, args[3:])
	}
	if err != nil {
		fmt.Fprintf(stderr, "sshpace: error: %s\n", termsafe.OneLine(err.Error()))
	}
	return exit, true
}
