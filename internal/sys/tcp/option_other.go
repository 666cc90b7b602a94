//go:build !linux

package tcp

import (
	"errors"
	"time"
)

const direct = false

var errWait = errors.ErrUnsupported

// QuickAck has no system call here.
func QuickAck(uintptr) error { return errors.ErrUnsupported }

func roundTrip(uintptr) time.Duration { return 0 }

func readNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }

func WriteNow(uintptr, []byte) (int, error) { return 0, errors.ErrUnsupported }
