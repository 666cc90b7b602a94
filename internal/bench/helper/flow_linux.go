package helper

import (
	"context"
	"os"

	"sshpace/internal/bench/flow"
)

func flowProgram(_ context.Context, args []string) (int, error) {
	if err := flow.Main(args, os.Stdin, os.Stdout); err != nil {
		return 1, err
	}
	return 0, nil
}
