package dropin

import (
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// joinOptions joins options and their values into one argument each, as Env.Engine takes them;
// others holds the words from the first that is not an option. values lists the options with a
// value.
func joinOptions(args []string, values string) (joined, others []string) {
	for len(args) > 0 {
		arg := args[0]
		if len(arg) < 2 || arg[0] != '-' || arg == "--" {
			return joined, args
		}
		args = args[1:]
		if at := strings.IndexAny(arg[1:], values); at == len(arg)-2 && len(args) > 0 {
			arg, args = arg+args[0], args[1:]
		}
		joined = append(joined, arg)
	}
	return joined, nil
}

// setting returns the value that an option of ssh gives to a keyword, in capitals.
func setting(option string, k conf.Keyword) (value string, given bool) {
	rest, isSetting := strings.CutPrefix(option, "-o")
	if !isSetting {
		return "", false
	}
	value, given = conf.Flags{Settings: []string{rest}}.Setting(k)
	return strings.ToUpper(strings.Trim(value, `"`)), given
}

// each splits the options one by one.
func each(options []string) (all []string) {
	for _, arg := range options {
		all = append(all, openssh.SplitOptions(arg, openssh.WithValue)...)
	}
	return all
}

// logLevel returns the log level that options set, each with its value (ssh(1) -q and -v,
// ssh_config(5) LogLevel), "" if none does: the last of the switches counts, without them the first
// setting.
func logLevel(options []string) (level string) {
	switched := false
	for _, option := range each(options) {
		value, set := setting(option, conf.LogLevel)
		switch {
		case option == "-q":
			level, switched = "QUIET", true
		case option == "-v":
			level, switched = "DEBUG", true
		case set && !switched && level == "":
			level = value
		}
	}
	return level
}

// heard returns the messages of ssh about a host that ssh prints under options, such as -q.
func heard(options, messages []string) []string {
	switch logLevel(options) {
	case "QUIET":
		return nil
	case "FATAL":
		return slices.DeleteFunc(slices.Clone(messages), func(line string) bool {
			return !strings.Contains(line, ": Permission denied (") && line != hostKeyFailed
		})
	}
	return messages
}

// asItIs reports whether options need an ssh that is started with exactly them: to report its
// steps, to log them to a file or the system's log, to ask for a terminal.
func asItIs(options []string) bool {
	level := logLevel(options)
	return level == "VERBOSE" || strings.HasPrefix(level, "DEBUG") || terminalWanted(options) || slices.ContainsFunc(each(options), func(option string) bool {
		return strings.HasPrefix(option, "-E") || option == "-y" || option == "-t"
	})
}

// terminalWanted reports whether a setting asks for a terminal, which counts if no switch forbids
// it.
func terminalWanted(options []string) bool {
	for _, option := range each(options) {
		if option == "-T" {
			return false
		}
		if value, set := setting(option, conf.RequestTTY); set {
			return value == "FORCE" || value == "YES"
		}
	}
	return false
}

// careful returns the options that ssh gets first when it runs with the user's arguments.
func careful(options []string) []string {
	first := []string{"-oBatchMode=yes", "-oStrictHostKeyChecking=yes"}
	if !terminalWanted(options) { // -T would win over the setting
		first = append(first, "-T")
	}
	return append(first, options...)
}

// sshDestination names a host for ssh(1).
func sshDestination(h host.Host) []string {
	var args []string
	if h.User != "" {
		args = append(args, "-l", h.User)
	}
	if h.Port != 0 {
		args = append(args, "-p", strconv.Itoa(int(h.Port)))
	}
	return append(args, "--", h.Name)
}
