package knownhosts

import (
	"errors"
	"io/fs"
	"net"
	"strings"

	"sshpace/internal/sys/bounded"
)

// Names lists the hosts of known_hosts files, each line's first name as people
// type it (name, name:port, [address]:port), each once. Hashed names cannot be read back; they are
// counted. Patterns, revoked keys and authorities name no host. Files that do
// not exist have none.
func Names(files ...string) (names []string, hashed int, err error) {
	seen := map[string]bool{}
	for _, file := range files {
		text, err := bounded.ReadFile(file, bounded.List)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, 0, err
		}
		number := 0
		for one := range strings.Lines(string(text)) {
			number++
			l, kind, _ := parseLine(strings.TrimSuffix(one, "\n"), number)
			if kind != lineEntry || l.marker != MarkerNone || l.pattern {
				continue
			}
			if l.hash != nil {
				hashed++
				continue
			}
			if name := typedName(l.hosts); !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	return names, hashed, nil
}

// typedName is the first name of a line: [name]:port loses its brackets unless
// the name is an address with colons.
func typedName(hosts string) string {
	name, _, _ := strings.Cut(hosts, ",")
	host, port, err := net.SplitHostPort(name)
	if err != nil || !strings.HasPrefix(name, "[") {
		return name
	}
	return net.JoinHostPort(host, port)
}
