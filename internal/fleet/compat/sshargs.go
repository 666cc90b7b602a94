package compat

import "strings"

// Options of ssh(1) and scp(1) that have a value.
const (
	sshValues = "BbcDEeFIiJLlmOoPpQRSWw"
	scpValues = "cDFiJloPSX"
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
