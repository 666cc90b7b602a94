package knownhosts

import (
	"net/netip"
	"strconv"
	"strings"
)

// defaultPort is the port whose number is left out of a file.
const defaultPort = 22

// HostPort is the name under which a host's key stands in a file: the host
// itself on port 22 (or 0, unknown), and "[host]:port" on every other port. It
// is lower-case, as ssh makes every name that it looks up. A HostKeyAlias
// replaces host and port: pass it with port 0.
func HostPort(host string, port int) string {
	host = lower(host)
	if port == 0 || port == defaultPort {
		return host
	}
	return "[" + host + "]:" + strconv.Itoa(port)
}

// SplitHostPort undoes HostPort. A name without "[...]:port" has port 22.
func SplitHostPort(name string) (host string, port int) {
	if !strings.HasPrefix(name, "[") {
		return name, defaultPort
	}
	end := strings.LastIndex(name, "]:")
	if end < 0 {
		return name, defaultPort
	}
	port, err := strconv.Atoi(name[end+2:])
	if err != nil || port < 1 || port > 65535 {
		return name, defaultPort
	}
	return name[1:end], port
}

// isAddress reports whether host is an IP address, with or without a zone.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// lower makes ASCII letters lower-case and leaves all other bytes alone, as
// tolower(3) does in OpenSSH. It copies only when it must.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return lowerCopy(s)
		}
	}
	return s
}

func lowerCopy(s string) string {
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}
