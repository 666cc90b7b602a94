package knownhosts

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// SplitConfig is the part of ssh_config that makes ssh use a split directory.
//
// The token is %h, the name after HostName and in lower case, under which ssh
// looks keys up; it has no port, so that the file of a host serves all of its
// ports. %k is the HostKeyAlias where there is one, but otherwise what was typed,
// which is neither the looked-up name nor lower-case. Giving both is worse than
// either: where they are the same file, UpdateHostKeys writes the keys into the
// first and then deletes them from the second. An own UserKnownHostsFile turns
// UpdateHostKeys off unless it is asked for.
//
// A name that the user types and that has a HostKeyAlias, typed to alias, gets a
// block of its own, since the key is looked up under the alias.
func SplitConfig(dir string, aliases map[string]string) (string, error) {
	path, err := configPath(dir)
	if err != nil {
		return "", err
	}
	files := func(name string) string {
		return quoteConfig(path+"/"+name) + " " + quoteConfig(path+"/"+PatternsFile)
	}
	var text strings.Builder
	text.WriteString("# One known_hosts file per host. ssh takes the first value that it finds: put this\n" +
		"# above other UserKnownHostsFile lines. A host with a HostKeyAlias needs a block as\n" +
		"# the last one, above it, with the file of the alias in the place of %h.\n")
	for _, typed := range slices.Sorted(maps.Keys(aliases)) {
		alias := lower(aliases[typed])
		if err := errors.Join(safeFileName(alias), safeFileName(lower(typed))); err != nil {
			return "", err
		}
		text.WriteString(splitBlock(typed, files(strings.ReplaceAll(alias, "%", "%%"))))
	}
	text.WriteString(splitBlock("*", files("%h")))
	return text.String(), nil
}

func splitBlock(host, files string) string {
	return fmt.Sprintf("Host %s\n    UserKnownHostsFile %s\n    UpdateHostKeys yes\n    HashKnownHosts no\n", host, files)
}

// configPath is a directory as it can stand in ssh_config, where "%" starts a
// token and "${" a variable, and where relative names depend on where ssh runs.
func configPath(dir string) (string, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(path, "\"\\\n\r\x00") || strings.Contains(path, "${") {
		return "", fmt.Errorf("ssh_config cannot name the directory %q; choose another", dir)
	}
	return strings.ReplaceAll(path, "%", "%%"), nil
}

// quoteConfig quotes a word of ssh_config where it must.
func quoteConfig(word string) string {
	if strings.ContainsAny(word, " \t'#=") {
		return `"` + word + `"`
	}
	return word
}
