package proc

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// Cores lists the cores that this process may use, by the kernel's numbers.
func Cores() (cores []int, err error) {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return nil, err
	}
	for core := 0; len(cores) < allowed.Count(); core++ {
		if allowed.IsSet(core) {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// OnCore runs start on one core: processes that it starts stay there.
func OnCore(core int, start func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	one.Set(core)
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	return start()
}
