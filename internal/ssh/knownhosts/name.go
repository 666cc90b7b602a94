package knownhosts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sshpace/internal/base/wildcard"
)

// DefaultPort is the port whose number is omitted in a file.
const DefaultPort = 22

// HostPort returns the name of a host's key in a file: the host itself on port 22 (or 0, unknown),
// and "[host]:port" on every other port. It is lower-case, as ssh makes every name that it looks
// up. A HostKeyAlias replaces host and port: pass it with port 0.
func HostPort(host string, port int) string {
	host = wildcard.Lower(host)
	if port == 0 || port == DefaultPort {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// SplitHostPort undoes HostPort. A name without "[...]:port" has port 22.
func SplitHostPort(name string) (host string, port int) {
	if !strings.HasPrefix(name, "[") {
		return name, DefaultPort
	}
	end := strings.LastIndex(name, "]:")
	if end < 0 {
		return name, DefaultPort
	}
	port, err := strconv.Atoi(name[end+2:])
	if err != nil || port < 1 || port > 65535 {
		return name, DefaultPort
	}
	return name[1:end], port
}

// CheckName refuses text that is not one plain name in a file.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a host key needs a host name")
	case len(name) >= wildcard.TooLong:
		return fmt.Errorf("host name of %d bytes is too long for known_hosts", len(name))
	case strings.ContainsAny(name[:1], "@#|"), strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r == ',' || r == '*' || r == '?' || r == '!'
	}):
		return fmt.Errorf("host name %q cannot be a plain name in known_hosts", name)
	}
	return nil
}

// needsMatching reports whether the host field can only be matched name by name; all others can be
// looked up.
func needsMatching(hosts string) bool {
	if strings.ContainsAny(hosts, "*?!") {
		return true
	}
	if len(hosts) < wildcard.TooLong {
		return false
	}
	for name := range strings.SplitSeq(hosts, ",") {
		if len(name) >= wildcard.TooLong {
			return true
		}
	}
	return false
}
