package login

import "sshpace/internal/record"

// Results returns the figures of each kind of login in a record file, the plain one first; and the
// CPU time of simultaneous logins relative to those alone.
func Results(f *record.File) ([]Result, Beside) {
	kinds, at := f.Logins(), map[int]kindOf{}
	for i, k := range kinds {
		at[k.ID] = i
	}
	// Levels of several factors can be one and the same login: the usual key exchange, OpenSSH's
	// defaults, a cold login by ssh. It is carried out for all of them at once, so that they have
	// the same figures, and all kinds more logins. The file may come from anybody: an unknown kind
	// has no logins.
	var alike []kindOf // whose logins count for each kind
	for i, k := range kinds {
		if like, known := at[k.Like]; known && k.Like > 0 {
			i = like
		}
		alike = append(alike, i)
	}
	failures := make([]string, len(kinds))
	var logins []*record.Reading // in the order of time
	var of []kindOf              // each of these
	for n := range f.Readings {
		l := &f.Readings[n]
		switch i, known := at[l.Subject]; {
		case !known:
		case l.Failure != "":
			failures[i] = l.Failure
		default:
			of, logins = append(of, i), append(logins, l)
		}
	}
	out, beside := summarized(kinds, alike, of, logins)
	for i, of := range alike {
		out[i].Failure = failures[of]
	}
	return out, beside
}
