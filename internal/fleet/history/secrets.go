package history

import (
	"slices"
	"strings"
)

// secretive are the options of ssh_config(5) whose values may hold secrets:
// environment and command lines.
var secretive = []string{"SetEnv", "ProxyCommand", "KnownHostsCommand", "LocalCommand", "RemoteCommand"}

// WithoutSecrets parts the values of -o into the names of those that are not to
// be recorded and all others.
func WithoutSecrets(options []string) (names, others []string) {
	for _, option := range options {
		words := strings.FieldsFunc(option, func(r rune) bool { return strings.ContainsRune(" \t\f\"=", r) })
		i := slices.IndexFunc(secretive, func(name string) bool { return len(words) > 0 && strings.EqualFold(name, words[0]) })
		switch {
		case i < 0:
			others = append(others, option)
		case !slices.Contains(names, secretive[i]):
			names = append(names, secretive[i])
		}
	}
	return names, others
}
