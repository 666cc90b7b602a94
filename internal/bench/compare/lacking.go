package compare

import (
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
)

// Lacking is an algorithm without figures in some files, so that it is not compared.
type Lacking struct {
	Kind     alg.Kind `json:"kind"`
	Name     string   `json:"name"`
	Measured []bool   `json:"measured"` // in each file
	Offered  []bool   `json:"offered"`  // by client and server of each file, whether measured or not
}

// lacking lists the algorithms that are not compared because a file lacks them, in the order of the
// files. Two names of one computation are measured by either of them.
func lacking(inputs []Input) (out []Lacking) {
	for _, kind := range alg.Measured {
		var all, figures []string
		measured, offered := make([][]string, len(inputs)), make([][]string, len(inputs))
		for i, in := range inputs {
			names := measuredOf(kind, in.Ranking)
			for _, name := range names {
				measured[i] = append(measured[i], alg.Canonical(kind, name))
			}
			offered[i] = append(offeredOf(kind, in.Ranking), names...)
			figures, all = append(figures, names...), append(all, offered[i]...)
		}
		for n, name := range all {
			if slices.Contains(all[:n], name) {
				continue
			}
			l := Lacking{Kind: kind, Name: name}
			for i := range inputs {
				l.Measured = append(l.Measured, slices.Contains(measured[i], alg.Canonical(kind, name)))
				l.Offered = append(l.Offered, slices.Contains(offered[i], name))
			}
			if slices.Contains(l.Offered, false) || slices.Contains(figures, name) && slices.Contains(l.Measured, false) {
				out = append(out, l)
			}
		}
	}
	return out
}

// Only returns the places of the files whose programs have it, where others have not.
func (l Lacking) Only() (files []int) {
	if !slices.Contains(l.Offered, false) {
		return nil
	}
	return places(l.Offered, true)
}

// Unmeasured returns the places of the files that could have measured it, and did not.
func (l Lacking) Unmeasured() []int { return places(l.Measured, false) }

func places(of []bool, value bool) (out []int) {
	for i, v := range of {
		if v == value {
			out = append(out, i)
		}
	}
	return out
}

// measuredOf returns the algorithms of a kind with figures in a ranking.
func measuredOf(kind alg.Kind, r *rank.Ranking) (names []string) {
	for _, c := range r.Bulk {
		names = append(names, c.Suite.Bulk().Name(kind))
	}
	for _, k := range r.Kex {
		if kind == alg.Kex {
			names = append(names, alg.Canonical(kind, k.Name)) // either of two names of one exchange may be listed
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name == "" })
}

// offeredOf returns the algorithms of a kind that client and server of a ranking have.
func offeredOf(kind alg.Kind, r *rank.Ranking) (names []string) {
	list := r.Campaign.Shared.List(kind)
	if len(list) == 0 {
		list = r.Campaign.Offer.List(kind)
	}
	for _, name := range list {
		if kind == alg.Kex {
			name = alg.Canonical(kind, name)
		}
		names = append(names, name)
	}
	return names
}

// defaults returns the suite that each file's programs negotiate by default; none where all are
// equal, or one is unknown.
func defaults(inputs []Input) (out []alg.Suite) {
	differ := false
	for _, in := range inputs {
		s := in.Ranking.Campaign.Present
		if s.Cipher == "" {
			return nil
		}
		out = append(out, s)
		first := out[0]
		differ = differ || s.Computation() != first.Computation() || alg.Canonical(alg.Kex, s.Kex) != alg.Canonical(alg.Kex, first.Kex)
	}
	if !differ {
		return nil
	}
	return out
}
