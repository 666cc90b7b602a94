package compare

import (
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
)

// ofAlgorithms maps kinds of algorithms to their tables.
var ofAlgorithms = map[alg.Kind]Table{alg.Cipher: Ciphers, alg.MAC: MACs, alg.Kex: Kex}

// lacking lists the algorithms that are not compared because a file lacks them, in the order of the
// files. Two names of one computation are measured by either of them.
func lacking(inputs []Input) (out []Only) {
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
			o := Only{Table: ofAlgorithms[kind], Subject: Subject{Name: name}, Files: with(measured, alg.Canonical(kind, name)), Offered: with(offered, name)}
			if len(o.Offered) < len(inputs) || slices.Contains(figures, name) && len(o.Files) < len(inputs) {
				out = append(out, o)
			}
		}
	}
	return out
}

// with returns the places of the files whose names include one.
func with(files [][]string, name string) (places []int) {
	for i, names := range files {
		if slices.Contains(names, name) {
			places = append(places, i)
		}
	}
	return places
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
