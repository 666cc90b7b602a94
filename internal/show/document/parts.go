package document

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/model"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Parts divides a cost, in ns per byte, by what it is spent on. Base is the
// cheapest cell's cost, Cipher what this cipher adds with the cheapest MAC, MAC
// what this MAC adds to the cheapest one. An AEAD cipher has no MAC part.
//
// Costs of cipher and MAC can be told apart only up to a constant: two columns
// of a table say nothing of what all cells have in common. These contrasts
// against the cheapest are what the cells do determine.
type Parts struct{ Base, Cipher, MAC float64 }

// PartsOf divides the costs of one side in one direction. The parts of a cell
// are in the proportion of the additive fit and add up to the cell's figure.
// It is empty where the side's cost is unknown.
func PartsOf(r *rank.Ranking, d record.Direction, side func(rank.Cell) *rank.Quantity) map[alg.Suite]Parts {
	costs := map[alg.Suite]float64{}
	var order []alg.Suite
	for _, c := range r.Bulk {
		if q := side(c); c.Direction == d && q != nil && q.Value > 0 {
			costs[c.Suite] = q.Value
			order = append(order, c.Suite)
		}
	}
	ciphers, macs := model.Effects(costs)
	least, base := 0.0, math.Inf(1)
	if len(macs) > 0 {
		least = slices.Min(slices.Collect(maps.Values(macs)))
	}
	fitted := func(s alg.Suite) float64 { // with the cheapest MAC
		if s.MAC == "" {
			return costs[s]
		}
		return ciphers[s.Cipher] + least
	}
	for _, s := range order {
		base = math.Min(base, fitted(s))
	}
	base = math.Max(base, 0)
	out := map[alg.Suite]Parts{}
	for _, s := range order {
		p := Parts{Base: base, Cipher: math.Max(0, fitted(s)-base)}
		if s.MAC != "" {
			p.MAC = math.Max(0, macs[alg.Primitive(s.MAC)]-least)
		}
		if sum := p.Base + p.Cipher + p.MAC; sum > 0 {
			scale := costs[s] / sum
			p = Parts{p.Base * scale, p.Cipher * scale, p.MAC * scale}
		}
		out[s] = p
	}
	return out
}
