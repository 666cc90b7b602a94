//go:build !linux

package proc

import "os/exec"

// Wait is cmd.Wait.
func Wait(cmd *exec.Cmd) error { return cmd.Wait() }
