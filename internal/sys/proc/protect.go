package proc

import "golang.org/x/sys/unix"

// Protect keeps the memory of this process out of core files, away from other processes of this
// user, and out of swap, as far as the system can. swapped: it could not be kept out of swap that
// there is.
func Protect() (swapped bool, err error) {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return false, err
	}
	return hide()
}
