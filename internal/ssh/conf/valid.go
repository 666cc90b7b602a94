package conf

import (
	"errors"
	"strings"
)

// Characters that are refused in names that end up in a command line: they mean something to shells
// (readconf.c:ssh_valid_hostname, ssh_valid_ruser, as of OpenSSH 10.5; they are refused with any
// installed ssh, and so is $ in a user).
const (
	hostMetacharacters = "'`\"$\\;&<>|(){},"
	userMetacharacters = "'`\"$;&<>|(){}"
)

// Reasons of CheckHost and CheckUser.
var (
	ErrUnsafeHost = errors.New("host name is empty, begins with - or contains blanks, control or shell characters")
	ErrUnsafeUser = errors.New("user name begins with - or contains control or shell characters")
)

// CheckHost refuses names that could be taken for an option or reach a shell through ProxyCommand
// (CVE-2023-51385).
func CheckHost(name string) error {
	if name == "" || name[0] == '-' || strings.ContainsAny(name, hostMetacharacters+" ") || hasControl(name) {
		return ErrUnsafeHost
	}
	return nil
}

// CheckUser is CheckHost for remote user names from outside the config files (CVE-2023-51385,
// CVE-2025-61984). "DOMAIN\user" passes, a \ at the end does not, nor does a - after a blank.
func CheckUser(name string) error {
	bad := strings.HasPrefix(name, "-") || strings.HasSuffix(name, `\`) || strings.Contains(name, " -") ||
		strings.ContainsAny(name, userMetacharacters) || hasControl(name)
	if bad {
		return ErrUnsafeUser
	}
	return nil
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
