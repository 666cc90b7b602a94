package openssh

import (
	"fmt"
	"os"
)

// privsepDir is the folder that Debian's sshd changes its root to before a
// login. Its start-up script makes it; where sshd never ran it is missing.
const privsepDir = "/run/sshd"

// PreparePrivilegeSeparation makes the folder that an sshd run by root needs
// (sshd.c: need_chroot). Ordinary users need none.
func PreparePrivilegeSeparation() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.MkdirAll(privsepDir, 0o755); err != nil {
		return fmt.Errorf("make %s for sshd: %w", privsepDir, err)
	}
	return nil
}
