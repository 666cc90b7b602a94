package plan

import (
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
)

// identify picks the cells that determine every cipher and every MAC: all AEAD ciphers, and of the
// table of ciphers by MACs a ring that touches every row and every column and joins them: each name
// of the longer list with one of the shorter, in turn, and the first few with the next one too.
func identify(cells []alg.Suite, seed uint64) []alg.Suite {
	var out []alg.Suite
	var ciphers, macs []string
	for _, c := range cells {
		if c.MAC == "" {
			out = append(out, c)
			continue
		}
		if !slices.Contains(ciphers, c.Cipher) {
			ciphers = append(ciphers, c.Cipher)
		}
		if !slices.Contains(macs, c.MAC) {
			macs = append(macs, c.MAC)
		}
	}
	ciphers, macs = sched.Shuffled(seed, 0, ciphers), sched.Shuffled(seed, 1, macs)
	long, short := len(macs), len(ciphers)
	at := func(l, s int) alg.Suite { return alg.Suite{Cipher: ciphers[s], MAC: macs[l]} }
	if long < short {
		long, short = short, long
		at = func(l, s int) alg.Suite { return alg.Suite{Cipher: ciphers[l], MAC: macs[s]} }
	}
	add := func(c alg.Suite) {
		if slices.Contains(cells, c) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for l := 0; l < long && short > 0; l++ {
		add(at(l, l%short))
	}
	for l := 0; l < min(short+1, long) && short > 0; l++ {
		add(at(l, (l+1)%short))
	}
	return out
}
