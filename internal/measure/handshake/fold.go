package handshake

import (
	"slices"

	"sshpace/internal/record"
)

// Levels of several factors can be one and the same login: the usual key exchange,
// OpenSSH's defaults, a cold login by ssh. It is carried out for all of them at
// once, so that they have the same figures, and everybody more logins.

// alike says for each case whose logins count for it: those of the first one with
// the same command line, which names the server, too.
func alike(cases []Case) []kindOf {
	var argvs [][]string
	of := make([]kindOf, len(cases))
	for i, c := range cases {
		argvs = append(argvs, c.Argv(""))
		of[i] = slices.IndexFunc(argvs, func(argv []string) bool { return slices.Equal(argv, argvs[i]) })
	}
	return of
}

// Distinct is how many logins a round of cases takes.
func Distinct(cases []Case) (n int) {
	for i, of := range alike(cases) {
		if of == i {
			n++
		}
	}
	return n
}

// alikeIn is alike of kinds that were recorded. The file may be anybody's: a kind
// that is not there has no logins.
func alikeIn(kinds []record.LoginKind) []kindOf {
	of := make([]kindOf, len(kinds))
	for i, k := range kinds {
		of[i] = i
		if j := slices.IndexFunc(kinds, func(o record.LoginKind) bool { return o.ID == k.Like }); k.Like > 0 && j >= 0 {
			of[i] = j
		}
	}
	return of
}
