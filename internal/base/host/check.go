package host

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName = 255 // bytes; a DNS name has 253 (RFC 1035 section 2.3.4), a file name 255
	maxUser = 255 // bytes; useradd(8) stops far below
)

// shellSpecial are the characters that ssh(1) refuses in names from its command line since 9.6
// (CVE-2023-51385), because a ProxyCommand or Match exec may pass the name through a shell. We
// refuse them whatever ssh is installed.
const shellSpecial = "'`\"\\;&<>|(){}$"

// patternSpecial lists the characters that turn a name into a pattern, a list, a comment or another
// field in known_hosts, ssh_config or a host set.
const patternSpecial = "*?,!^[]#=@"

// userSpecial permits DOMAIN\user, which is usual on Windows, and an @ inside.
const userSpecial = "'`\";&<>|(){}$" + "*?,!^[]"

// Check says why the host must not be used: an unsafe name or user (CVE-2023-51385,
// CVE-2025-61984). Parse has called it; code that fills a Host by hand must.
func (h Host) Check() error {
	if err := CheckName(h.Name); err != nil {
		return err
	}
	if h.Address != "" {
		if err := CheckName(h.Address); err != nil {
			return fmt.Errorf("address: %w", err)
		}
	}
	if h.User == "" {
		return nil
	}
	return CheckUser(h.User)
}

// CheckName accepts host names, aliases and addresses that are safe as an argument of ssh, in
// known_hosts and in a ProxyCommand.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("empty host name")
	case len(name) > maxName:
		return fmt.Errorf("host name has %d bytes, at most %d are allowed", len(name), maxName)
	case name[0] == '-':
		return errors.New("a host name must not begin with -, ssh would take it for an option")
	case strings.Contains(name, ":"):
		return checkIPv6(name)
	}
	return checkRunes("host name", name, shellSpecial+patternSpecial+"%")
}

// checkIPv6 accepts an address with colons, with or without a zone (RFC 4007 section 11). The zone
// is checked as a name, netip takes anything.
func checkIPv6(name string) error {
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return errors.New("neither host:port nor an IPv6 address; write [address]:port for IPv6 with a port")
	}
	return checkRunes("zone", addr.Zone(), shellSpecial+patternSpecial+"%/:")
}

// CheckUser accepts login names as ssh(1) does: no control characters, no quotes or shell
// characters, nothing that becomes an option after expansion.
func CheckUser(user string) error {
	switch {
	case user == "":
		return errors.New("empty user")
	case len(user) > maxUser:
		return fmt.Errorf("user has %d bytes, at most %d are allowed", len(user), maxUser)
	case user[0] == '-':
		return errors.New("a user must not begin with -, ssh would take it for an option")
	case user[0] == '@':
		return errors.New("a user must not begin with @, it would read as a group")
	case strings.HasSuffix(user, `\`):
		return errors.New(`a user must not end with \`)
	}
	return checkRunes("user", user, userSpecial)
}

// checkRunes refuses characters that cannot be shown or that split a word: blanks, control and
// format characters (bidi among them), broken UTF-8 and the given characters.
func checkRunes(what, s, refused string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", what)
	}
	for _, r := range s {
		if unicode.IsSpace(r) || !unicode.IsPrint(r) || strings.ContainsRune(refused, r) {
			return fmt.Errorf("%s must not contain %q", what, r)
		}
	}
	return nil
}
