package advise

import (
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
)

// Logins is the choice of a key exchange.
type Logins struct {
	Options []rank.Exchange // allowed by the policy, best first: post-quantum ones before the others, unless the policy is classical
	Tied    int             // number of the first ones without a significant difference
	Present int             // place of the present one; -1: unknown, not measured or not allowed
	Forbids bool            // the policy refuses the present one
	// PostQuantum is the additional CPU time of the best post-quantum exchange over the best other
	// one, of both sides together in ns; 0 where one is missing.
	PostQuantum float64
}

// loginsOf chooses among the key exchanges of a ranking.
func loginsOf(r *rank.Ranking, p Policy, present string) Logins {
	l := Logins{Options: p.Only(r).Kex, Forbids: present != "" && p.Refuses(alg.Kex, present, r.Environment.StrictKex) != ""}
	first := front(l.Options, func(k rank.Exchange) bool { return k.PostQuantum && !p.Classical })
	for i, k := range l.Options {
		if k.Group == l.Options[0].Group && (i < first) == (first > 0) {
			l.Tied++
		}
	}
	l.Present = slices.IndexFunc(l.Options, func(k rank.Exchange) bool { return present != "" && sameName(alg.Kex, k.Name, present) })
	l.PostQuantum = l.surcharge()
	return l
}

// first returns the best key exchange, by all its names, if a change is necessary: a login happens
// once, so an allowed one stays.
func (l Logins) first() []string {
	if !l.Forbids || len(l.Options) == 0 {
		return nil
	}
	return append([]string{l.Options[0].Name}, l.Options[0].Aliases...)
}

// surcharge returns the additional cost of post-quantum exchanges.
func (l Logins) surcharge() float64 {
	best := map[bool]float64{}
	for _, k := range l.Options {
		if have := best[k.PostQuantum]; k.Total.Known() && (have == 0 || k.Total.Value() < have) {
			best[k.PostQuantum] = k.Total.Value()
		}
	}
	if best[true] == 0 || best[false] == 0 {
		return 0
	}
	return best[true] - best[false]
}
