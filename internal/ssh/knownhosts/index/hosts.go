package index

import (
	"net"
	"strings"

	"sshpace/internal/ssh/knownhosts"
)

// Hosts lists the hosts of all files, each line's first name as people type it (name, name:port,
// [address]:port), each once. Hashed names cannot be read back; they are counted. Patterns, revoked
// keys and authorities name no host.
func (x *Index) Hosts() (names []string, hashed int) {
	seen := map[string]bool{}
	for _, t := range x.Tables() {
		for _, l := range t.Lines() {
			switch {
			case l.Marker != knownhosts.MarkerNone, l.Pattern:
				continue
			case l.Hashed():
				hashed++
				continue
			}
			if name := typedName(l.Hosts); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, hashed
}

// typedName returns the first name of a line: [name]:port loses its brackets unless the name is an
// address with colons.
func typedName(hosts string) string {
	name, _, _ := strings.Cut(hosts, ",")
	host, port, err := net.SplitHostPort(name)
	if err != nil || !strings.HasPrefix(name, "[") {
		return name
	}
	return net.JoinHostPort(host, port)
}
