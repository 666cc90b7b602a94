package knownhosts

import (
	"fmt"
	"path/filepath"
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
func SplitConfig(dir string) (string, error) {
	path, err := configPath(dir)
	if err != nil {
		return "", err
	}
	own, patterns := quoteConfig(path+"/%h"), quoteConfig(path+"/"+PatternsFile)
	return fmt.Sprintf(`# One known_hosts file per host. ssh takes the first value it finds, so put this
# above other UserKnownHostsFile lines; a Host with a HostKeyAlias needs, above it,
# its own line: UserKnownHostsFile %s
Host *
    UserKnownHostsFile %s %s
    UpdateHostKeys yes
    HashKnownHosts no
`, quoteConfig(path+"/%k"), own, patterns), nil
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
