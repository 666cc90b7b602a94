package compat

import (
	"strconv"
	"strings"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
)

// joinOptions puts options and their values into one argument each, as Env.Engine
// takes them; others is what follows from the first word that is no option. values
// are the options that have one.
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

// logLevel is how much ssh is told to say of itself by options, each with its value (ssh(1)
// -q and -v, ssh_config(5) LogLevel), "" where nothing says so; the first one counts.
func logLevel(options []string) string {
	for _, arg := range options {
		for _, option := range openssh.SplitOptions(arg, openssh.WithValue) {
			rest, isSetting := strings.CutPrefix(option, "-o")
			level, set := conf.Flags{Settings: []string{rest}}.Setting(conf.LogLevel)
			switch {
			case isSetting && set:
				return strings.ToUpper(strings.Trim(level, `"`))
			case option == "-q":
				return "QUIET"
			case option == "-v":
				return "DEBUG"
			}
		}
	}
	return ""
}

// quiet tells whether ssh is told to say nothing of itself.
func quiet(options []string) bool {
	return logLevel(options) == "QUIET" || logLevel(options) == "FATAL"
}

// traces tells whether ssh is to tell what it does, which only the ssh program can.
func traces(options []string) bool {
	return logLevel(options) == "VERBOSE" || strings.HasPrefix(logLevel(options), "DEBUG")
}

// careful are the options that ssh gets first where it runs as it is.
func careful(options []string) []string {
	return append([]string{"-T", "-oBatchMode=yes", "-oStrictHostKeyChecking=yes"}, options...)
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
