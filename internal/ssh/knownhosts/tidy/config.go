package tidy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"

	"sshpace/internal/ssh/conf"
)

// SplitConfig returns the part of ssh_config that makes ssh use a split directory.
//
// The token is %h, the name after HostName and in lower case, under which ssh looks keys up; it has
// no port, so that the file of a host serves all of its ports. %k is the HostKeyAlias where there
// is one, but otherwise the typed name, which is neither the looked-up name nor lower-case. Giving
// both is worse than either: where they are the same file, UpdateHostKeys writes the keys into the
// first and then deletes them from the second. A UserKnownHostsFile turns UpdateHostKeys off unless
// it is set.
//
// A typed name with a HostKeyAlias (aliases maps one to the other) gets its own block, since the
// key is looked up under the alias.
func SplitConfig(dir string, aliases map[string]string) (string, error) {
	path, err := ConfigPath(dir)
	if err != nil {
		return "", err
	}
	files := func(name string) string {
		return conf.Quote(path+"/"+name) + " " + conf.Quote(path+"/"+patternsFile)
	}
	var text strings.Builder
	text.WriteString("# One known_hosts file per host. ssh takes the first value it finds, so put this\n" +
		"# above other UserKnownHostsFile lines. For a host with HostKeyAlias, copy the\n" +
		"# last block to the top of these lines, with the alias instead of %h.\n")
	for _, typed := range slices.Sorted(maps.Keys(aliases)) {
		alias := wildcard.Lower(aliases[typed])
		if err := errors.Join(CheckName(alias), CheckName(wildcard.Lower(typed))); err != nil {
			return "", err
		}
		text.WriteString(block(typed, files(strings.ReplaceAll(alias, "%", "%%"))))
	}
	text.WriteString(block("*", files("%h")))
	return text.String(), nil
}

func block(host, files string) string {
	return fmt.Sprintf("Host %s\n    UserKnownHostsFile %s\n    UpdateHostKeys yes\n    HashKnownHosts no\n", host, files)
}
