package cli

import (
	"context"
	"os"

	"sshpace/internal/bench/flow"
)

// flowProgram is the helper at the ends of a measured connection.
func flowProgram(_ context.Context, args []string) (int, error) {
	return 1, flow.Main(args, os.Stdin, os.Stdout)
}
