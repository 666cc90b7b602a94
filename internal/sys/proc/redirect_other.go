//go:build !linux

package proc

import "golang.org/x/sys/unix"

// redirect makes a descriptor another name of an open file.
func redirect(file, descriptor int) error { return unix.Dup2(file, descriptor) }
