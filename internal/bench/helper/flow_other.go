//go:build !linux

package helper

import (
	"context"
	"errors"
)

func flowProgram(context.Context, []string) (int, error) {
	return 1, errors.New("measuring needs Linux")
}
