package login

import "sshpace/internal/record"

// recorded holds the logins of a record file.
type recorded struct {
	names    []named
	alike    []kindOf          // kind whose logins count for each kind
	failures []string          // of each kind; "" is none
	logins   []*record.Reading // in the order of time
	kinds    []kindOf          // each of these
}

func recordedIn(f *record.File) (r recorded) {
	at := map[int]kindOf{}
	kinds := f.Logins()
	for i, k := range kinds {
		at[k.ID] = i
		r.names = append(r.names, named{k.Factor, k.Level})
	}
	// Levels of several factors can be one and the same login: the usual key exchange, OpenSSH's
	// defaults, a cold login by ssh. It is carried out for all of them at once, so that they have
	// the same figures, and all kinds more logins. The file may come from anybody: an unknown kind
	// has no logins.
	for i, k := range kinds {
		if like, known := at[k.Like]; known && k.Like > 0 {
			i = like
		}
		r.alike = append(r.alike, i)
	}
	r.failures = make([]string, len(r.names))
	for n := range f.Readings {
		l := &f.Readings[n]
		i, known := at[l.Subject]
		switch {
		case !known:
		case l.Failure != "":
			r.failures[i] = l.Failure
		default:
			r.kinds, r.logins = append(r.kinds, i), append(r.logins, l)
		}
	}
	return r
}

// Results summarizes the logins of a record file: a result for each kind of login, the plain one
// first, and the CPU time of simultaneous logins relative to single ones.
func Results(f *record.File) ([]Result, Beside) {
	r := recordedIn(f)
	out, beside := summarized(r.names, r.alike, r.kinds, r.logins)
	for i, of := range r.alike {
		out[i].Failure = r.failures[of]
	}
	return out, beside
}
