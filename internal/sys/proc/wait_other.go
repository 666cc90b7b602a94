//go:build !linux

package proc

import "os/exec"

// Wait is cmd.Wait.
func Wait(cmd *exec.Cmd) error { return cmd.Wait() }

// run is cmd.Run.
func run(cmd *exec.Cmd) error { return cmd.Run() }
