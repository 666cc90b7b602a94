package compare

import (
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
)

// exchangesBy resolves the quantity by which logins are compared: their time, unless it was too
// noisy for a ranking in one of the files.
func (c *Comparison) exchangesBy(by rank.By) rank.By {
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
		if c.kexBy == rank.Cost {
			return c.of.cost(k.Sides)
		}
		return k.Login.Estimate
	}
	return stats.Estimate{}
}

// exchanges compares the logins of the key exchanges that all files have.
func (c *Comparison) exchanges(tables []table) (lines []Line) {
	first := c.Inputs[0].Ranking
	for _, k := range first.Kex {
		l := c.line(Kex, c.kexBy, Subject{Name: k.Name, Suite: alg.Suite{Kex: k.Name}})
		own := c.exchange(first, k.Name)
		for _, in := range c.Inputs[1:] {
			if other := c.exchange(in.Ranking, k.Name); other.Known() && own.Known() {
				l.Ratios = append(l.Ratios, Ratio{Estimate: own.Over(other)})
			}
		}
		if len(l.Ratios) == len(c.Inputs)-1 {
			lines = append(lines, l)
		}
	}
	for k, in := range c.Inputs[1:] {
		level := math.Hypot(first.LoginLevel(c.kexBy), in.Ranking.LoginLevel(c.kexBy))
		line := math.Hypot(first.LineLevel(c.kexBy), in.Ranking.LineLevel(c.kexBy))
		guests := ofLogin * tables[k+1].guests.Log
		complete(lines, k, math.Hypot(level, guests), math.Hypot(line, guests))
	}
	return lines
}
