package proc

import "golang.org/x/sys/unix"

// redirect makes a descriptor another name of an open file.
func redirect(file, descriptor int) error { return unix.Dup3(file, descriptor, 0) }
