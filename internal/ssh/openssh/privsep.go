package openssh

import (
	"fmt"
	"os"
	"strings"
)

// privsepDir is the directory that Debian's sshd changes its root to before a login. Its start-up
// script makes it; where sshd never ran it is missing.
const privsepDir = "/run/sshd"

// PreparePrivilegeSeparation makes the directory that an sshd run by root needs (sshd.c:
// need_chroot). Ordinary users need none.
func PreparePrivilegeSeparation() error {
	if os.Getuid() != 0 {
		return nil
	}
	if err := os.MkdirAll(privsepDir, 0o755); err != nil {
		return fmt.Errorf("make %s for sshd: %w", privsepDir, err)
	}
	return nil
}

// Locked reports whether sshd would refuse a user because the account is locked: without PAM it
// does where the password field begins with "!" (auth.c: allowed_user). Ubuntu locks root like
// that. Only root's sshd can see the field, so for ordinary users the answer is no.
func Locked(user string) bool {
	text, err := os.ReadFile("/etc/shadow")
	return err == nil && locked(string(text), user)
}

func locked(shadow, user string) bool {
	for line := range strings.Lines(shadow) {
		if fields := strings.Split(line, ":"); fields[0] == user && len(fields) > 1 {
			return strings.HasPrefix(fields[1], "!")
		}
	}
	return false
}
