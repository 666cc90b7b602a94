package login

import (
	"slices"

	"sshpace/internal/record"
)

// Levels of several factors can be one and the same login: the usual key exchange,
// OpenSSH's defaults, a cold login by ssh. It is carried out for all of them at
// once, so that they have the same figures, and everybody more logins.

// alikeIn says for each kind that was recorded whose logins count for it. The file may be anybody's: a kind
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
