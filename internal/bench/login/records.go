package login

import (
	"sshpace/internal/record"
)

// record is the login's record.
func (o *observed) record(kind int, failure error) *record.WatchedLogin {
	r := &record.WatchedLogin{Kind: kind, Start: o.began}
	if o.core != alone {
		r.Core = &o.core
	}
	if failure != nil {
		r.Failure = failure.Error()
	}
	if l := o.Login; l != nil {
		r.WallNS, r.ClientCPUNS = l.Whole, &l.ClientCPU
		for _, s := range l.Spans {
			r.Phases = append(r.Phases, record.LoginPhase{Phase: string(s.Phase), WallNS: s.NS})
		}
	}
	if o.server > 0 {
		r.ServerCPUNS = &o.server
	}
	if w := o.wire; w != nil {
		r.UpBytes, r.DownBytes = w.Up, w.Down
		for _, s := range w.Stalls {
			r.Stalls = append(r.Stalls, record.LoginStall{Side: s.Side, AtNS: s.At, WallNS: s.NS, Why: s.Why})
		}
	}
	return r
}

// recorded is what a record file has of logins.
type recorded struct {
	names    []named
	alike    []kindOf
	failures []string    // of each kind; "" is none
	logins   []*observed // in the order of time
	kinds    []kindOf    // each of these
}

func recordedIn(f *record.File) (r recorded) {
	at := map[int]kindOf{}
	for i, k := range f.LoginKinds {
		at[k.ID] = i
		r.names = append(r.names, named{k.Factor, k.Level})
	}
	r.alike, r.failures = alikeIn(f.LoginKinds), make([]string, len(r.names))
	for _, l := range f.LoginRuns {
		i, known := at[l.Kind]
		switch {
		case !known:
		case l.Failure != "":
			r.failures[i] = l.Failure
		default:
			r.kinds, r.logins = append(r.kinds, i), append(r.logins, observedIn(l))
		}
	}
	return r
}

// Results are those of a record file: of each kind of login, the plain one first; and
// how much CPU time logins beside others take of that of those alone.
func Results(f *record.File) ([]Result, Beside) {
	r := recordedIn(f)
	out, beside := summarized(r.names, r.alike, r.kinds, r.logins)
	for i, of := range r.alike {
		out[i].Failure = r.failures[of]
	}
	return out, beside
}

// observedIn is the login of a record.
func observedIn(r record.WatchedLogin) *observed {
	o := &observed{Login: &Login{Whole: r.WallNS}, began: r.Start, core: alone}
	if r.Core != nil {
		o.core = *r.Core
	}
	for _, p := range r.Phases {
		o.Spans = append(o.Spans, Span{Phase(p.Phase), p.WallNS})
	}
	if r.ClientCPUNS != nil {
		o.ClientCPU = *r.ClientCPUNS
	}
	if r.ServerCPUNS != nil {
		o.server = *r.ServerCPUNS
	}
	if r.UpBytes > 0 {
		o.wire = &Wire{Up: r.UpBytes, Down: r.DownBytes, Stalls: []Stall{}}
		for _, s := range r.Stalls {
			o.wire.Stalls = append(o.wire.Stalls, Stall{s.Side, s.AtNS, s.WallNS, s.Why})
		}
	}
	return o
}
