//go:build !linux

package proc

import (
	"os/exec"
	"time"
)

// Wait is cmd.Wait.
func Wait(cmd *exec.Cmd) error { return cmd.Wait() }

func run(cmd *exec.Cmd) error { return cmd.Run() }

// reap knows of no orphans.
func reap(int, bool) time.Duration { return 0 }
