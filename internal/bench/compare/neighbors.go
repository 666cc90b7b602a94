package compare

import (
	"fmt"
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
)

// unlike is how differently cells feel a change of other guests from one run to the next, as a
// standard error: computations that keep many execution units busy (AES, UMAC, SHA-512) are slowed
// about twice as much as those that wait for their own results.
const unlike = 0.25

// chance is the difference between the slices of two equally slowed runs, as a share of the
// slowdown that they show: of four times seven runs of a minute, slowed by 2 to 16 %, levels agree
// best with 1 to 5 %. Five runs of one hour, all slowed by about 48 %, showed 29 to 34 %.
const chance = 0.03

// hidden is the part of that slowdown that a core that other programs keep busy may hide, as a
// logarithm: two times three runs beside a busy loop were 1.1 to 8.5 % apart, and 0.6 to 3.0 %
// without the slowdown that their slices show.
const hidden = 0.02

// ofLogin is how differently from transfers a login may feel a change of other guests, as a
// standard error: one waits for the network, another (sntrup761) computes with vectors, and felt
// twice as much.
const ofLogin = 1.0

// takenOut reports the effects that were removed from the ratios.
func takenOut(tables []table, inputs []Input) (out []rank.Warning) {
	for k, t := range tables {
		slower, faster, slowed := inputs[k].Label, inputs[0].Label, -t.guests.Log
		if slowed < 0 {
			slower, faster, slowed = faster, slower, -slowed
		}
		if slowed >= stats.Margin {
			out = append(out, rank.Warning{Name: "guests", Text: fmt.Sprintf("other guests of the machine slowed %s by %s more than %s: the ratios are corrected for it as far as the slices show it",
				slower, unit.Difference(math.Expm1(slowed)), faster)})
		}
	}
	return out
}

// Neighbors returns by how much other guests of the machine made the other ranking faster than the
// first. N is 0 where that is unknown, or where the machines differ.
func Neighbors(first, other *rank.Ranking) stats.Estimate {
	before, after := first.Slowed.Cost, other.Slowed.Cost
	if !first.Slowed.Known || !other.Slowed.Known || first.Environment.CPU != other.Environment.CPU {
		return stats.Estimate{}
	}
	change, doubt := before-after, math.Hypot(chance*math.Hypot(before, after), hidden*math.Max(first.Slowed.Kept(), other.Slowed.Kept()))
	if math.Abs(change) <= doubt {
		change = 0
	} else {
		change *= 1 - doubt*doubt/(change*change) // James and Stein 1961
	}
	return stats.Estimate{Log: change, Err: unlike * math.Abs(change), N: 1}
}
