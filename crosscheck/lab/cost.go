//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Cost of one run of one program.
type Cost struct {
	CPU    time.Duration // user and system time of it and of all processes that it has waited for
	Server time.Duration // likewise of sshd
	Wall   time.Duration
	Peak   int64 // largest resident memory of one process, in bytes
	Lost   int   // hosts without the command
}

// Measure runs a program, and returns when the servers' processes have ended, too.
func (l *Lab) Measure(ctx context.Context, argv []string, env ...string) (Cost, error) {
	before, err := l.ServerCPU()
	if err != nil {
		return Cost{}, err
	}
	c, err := Measure(ctx, argv, env...)
	if l.startups != "" {
		if _, failed := errors.AsType[*exec.ExitError](err); failed {
			err = nil // it lost some
		}
		if err == nil {
			c.Lost, err = l.Lost()
		}
	}
	if err != nil {
		return c, err
	}
	after, err := l.ServerCPU()
	c.Server = after - before
	return c, err
}

// Measure runs a program that has no server.
func Measure(ctx context.Context, argv []string, env ...string) (Cost, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.Env = append(append(os.Environ(), "LC_ALL=C.UTF-8"), env...)
	start := time.Now()
	err := cmd.Run()
	c := Cost{Wall: time.Since(start)}
	if err != nil {
		err = fmt.Errorf("%w: %.500s", err, out.String())
	}
	if state := cmd.ProcessState; state != nil {
		c.CPU = state.UserTime() + state.SystemTime()
		c.Peak = state.SysUsage().(*syscall.Rusage).Maxrss << 10
	}
	return c, err
}
