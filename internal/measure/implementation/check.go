//go:build linux

package implementation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
)

// Check refuses pairs with names of makers that nobody knows.
func Check(pairs []string) error {
	clients, servers := Makers()
	for _, pair := range pairs {
		if pair == "all" && len(pairs) == 1 {
			return nil
		}
		client, server, _ := strings.Cut(pair, ":")
		for _, side := range []struct {
			name, what string
			known      []string
		}{{client, "client", clients}, {cmp.Or(server, "*"), "server", servers}} {
			if !slices.ContainsFunc(side.known, func(name string) bool { return alg.Match([]string{side.name}, name) }) {
				return fault.Usage(fmt.Sprintf("--pairs all, or of %ss: %s", side.what, strings.Join(side.known, ", ")), "--pairs %s: unknown %s %q", pair, side.what, side.name)
			}
		}
	}
	return nil
}
