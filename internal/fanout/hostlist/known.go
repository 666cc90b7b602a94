package hostlist

import (
	"context"
	"io"
	"slices"
)

// Known returns the names of hosts in ssh_config and known_hosts, and those of groups if they are
// wanted. Errors give no names: a completion has nobody to report to.
func Known(ctx context.Context, s Surroundings, groups bool) (names []string) {
	s.Stderr = io.Discard
	sources, err := new(Sources).Open(ctx, s)
	if err != nil {
		return nil
	}
	if plain := sources.Groups[""]; groups && plain != nil {
		all, _ := plain.Names("")
		for _, group := range all {
			names = append(names, "@"+group)
		}
	}
	for _, source := range []string{"ssh_config", "known_hosts"} {
		hosts, _ := sources.Groups[source].Group("", "all")
		names = append(names, hosts...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
