package compare

import (
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
)

// kexBy resolves the quantity by which logins are compared: their time, unless it was too noisy for
// a ranking in one of the files.
func (c *Comparison) kexBy(by rank.By) rank.By {
	noisy := false
	for _, in := range c.Inputs {
		noisy = noisy || in.Ranking.KexBy == rank.Cost
		for _, k := range in.Ranking.Kex {
			if !c.of.cost(k.Sides).Known() {
				return rank.Throughput
			}
		}
	}
	if by == rank.Cost || noisy && by != rank.Throughput {
		return rank.Cost
	}
	return rank.Throughput
}

// exchange returns the login of a key exchange, in that quantity.
func (c *Comparison) exchange(r *rank.Ranking, name string) stats.Estimate {
	for _, k := range r.Kex {
		if alg.Canonical(alg.Kex, k.Name) != alg.Canonical(alg.Kex, name) {
			continue
		}
		if c.KexBy == rank.Cost {
			return c.of.cost(k.Sides)
		}
		return k.Login.Estimate
	}
	return stats.Estimate{}
}

// exchanges compares the logins of the key exchanges that all files have.
func (c *Comparison) exchanges(tables []table) {
	first := c.Inputs[0].Ranking
	var lines [][]Ratio
	for _, k := range first.Kex {
		g := Group{Name: k.Name}
		own := c.exchange(first, k.Name)
		for _, in := range c.Inputs[1:] {
			if other := c.exchange(in.Ranking, k.Name); other.Known() && own.Known() {
				g.Ratios = append(g.Ratios, Ratio{Speed: own.Over(other)})
			}
		}
		if len(g.Ratios) == len(c.Inputs)-1 {
			c.Kex, lines = append(c.Kex, g), append(lines, g.Ratios)
		}
	}
	for k, in := range c.Inputs[1:] {
		level := math.Hypot(first.LoginLevel(c.KexBy), in.Ranking.LoginLevel(c.KexBy))
		line := math.Hypot(first.LineLevel(c.KexBy), in.Ranking.LineLevel(c.KexBy))
		guests := ofLogin * tables[k+1].guests.Log
		complete(lines, k, math.Hypot(level, guests), math.Hypot(line, guests))
	}
	judge(lines)
}
