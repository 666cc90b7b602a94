package history

import (
	"path/filepath"
	"slices"
	"strings"
)

// secretive are the options of ssh_config(5) whose values may hold secrets: environment and command
// lines.
var secretive = []string{"SetEnv", "ProxyCommand", "KnownHostsCommand", "LocalCommand", "RemoteCommand"}

// WithoutSecrets parts the values of -o into the names of those that must not be recorded and all
// others. It accepts more spellings of such a name than ssh does: a refused value may hold a
// secret, too.
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

// Kept returns the flags of a run as they are recorded: without options that may hold secrets, and
// files by names that are valid in any directory.
func Kept(flags map[string][]string) map[string][]string {
	if _, flags["option"] = WithoutSecrets(flags["option"]); len(flags["option"]) == 0 {
		delete(flags, "option")
	}
	for _, name := range []string{"config", "identity", "vars", "inventory"} {
		for i, v := range flags[name] {
			if name != "inventory" || !strings.Contains(v, ",") { // where it is a list of hosts
				flags[name][i] = absolute(v)
			}
		}
	}
	return flags
}

// absolute makes a file name independent of the current directory. ssh itself expands ~ and %, and
// "none" is not a file.
func absolute(file string) string {
	if file == "" || file == "none" || file[0] == '~' || file[0] == '%' {
		return file
	}
	if abs, err := filepath.Abs(file); err == nil {
		return abs
	}
	return file
}
