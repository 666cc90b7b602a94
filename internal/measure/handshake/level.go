package handshake

import (
	"math"
	"time"

	"sshpace/internal/base/stats"
)

// What else runs on a machine slows it for seconds, and caches that it leaves cold
// cost more for a while. So logins in a row take more than usual together, which
// tells what of it is not theirs. The two sides of a login tell nothing about each
// other: what disturbs the one disturbs the other, in all logins of a kind.

const (
	besides     = 3    // logins before and after one that tell how disturbed it was
	mostOff     = 0.25 // of a logarithm: what is off by more counts as this
	minLevelled = 4    // logins of each kind
	passes      = 3    // each knows better than the one before what is usual
)

// side of a login: the client, or the server.
type side int

const sides = 2

// cpu is what a side took; 0 is unknown.
func (o *observed) cpu(s side) *time.Duration {
	if s == 0 {
		return &o.ClientCPU
	}
	return &o.server
}

// deviant is one side's CPU time of one login.
type deviant struct {
	cpu  *time.Duration
	log  float64
	off  float64 // from what logins of its kind take on that side
	near float64 // how far the logins around it are off
}

// level takes out of the CPU times of logins, given in the order of time, what the
// logins of other kinds just before and after each tell of it: as much of that as
// such logins have in common.
func level(kinds []int, logins []*observed) {
	for range passes {
		rows := deviants(kinds, logins)
		if rows == nil {
			return
		}
		for i := range rows {
			near := around(rows, kinds, i)
			for s := range rows[i] {
				rows[i][s].near = near
			}
		}
		slope := follow(rows)
		for i := range rows {
			for _, d := range rows[i] {
				if d.cpu != nil {
					*d.cpu = time.Duration(math.Exp(d.log - slope*d.near))
				}
			}
		}
	}
}

// deviants are the CPU times and what they are off by; nil where there are too few.
func deviants(kinds []int, logins []*observed) [][sides]deviant {
	type group struct {
		kind int
		side side
	}
	rows := make([][sides]deviant, len(logins))
	logs := map[group][]float64{}
	for i, o := range logins {
		for s := range side(sides) {
			if cpu := o.cpu(s); *cpu > 0 {
				log := math.Log(float64(*cpu))
				rows[i][s] = deviant{cpu: cpu, log: log}
				logs[group{kinds[i], s}] = append(logs[group{kinds[i], s}], log)
			}
		}
	}
	centres := map[group]float64{}
	for g, l := range logs {
		if len(l) < minLevelled {
			return nil
		}
		centres[g] = stats.HodgesLehmann(l).Value
	}
	for i := range rows {
		for s := range rows[i] {
			if d := &rows[i][s]; d.cpu != nil {
				d.off = clipped(d.log - centres[group{kinds[i], side(s)}])
			}
		}
	}
	return rows
}

func clipped(off float64) float64 { return max(-mostOff, min(mostOff, off)) }

// around is how far the logins of other kinds around one are off in the mean.
func around(rows [][sides]deviant, kinds []int, i int) float64 {
	sum, n := 0.0, 0.0
	for j := max(0, i-besides); j <= min(len(rows)-1, i+besides); j++ {
		for _, d := range rows[j] {
			if d.cpu != nil && kinds[j] != kinds[i] {
				sum, n = sum+d.off, n+1
			}
		}
	}
	return sum / max(1, n)
}

// follow is by how much CPU times follow the logins around them, between 0 and 1.
func follow(rows [][sides]deviant) float64 {
	var nears, offs []float64
	for i := range rows {
		for _, d := range rows[i] {
			if d.cpu != nil {
				nears, offs = append(nears, d.near), append(offs, d.off)
			}
		}
	}
	return max(0, min(1, stats.Proportion(nears, offs)))
}

// shared is how much CPU times of a side vary: the deviation of their logarithms
// within kinds of logins.
type shared struct{ deviation, degrees float64 }

func sharedBy(groups [][]time.Duration) shared {
	var logs [][]float64
	for _, g := range groups {
		_, offs := centred(g)
		logs = append(logs, offs)
	}
	deviation, degrees := stats.PooledDeviation(logs)
	return shared{deviation, degrees}
}

// centred are CPU times as their location, and by how much each is off.
func centred(all []time.Duration) (centre float64, offs []float64) {
	for _, d := range all {
		offs = append(offs, math.Log(float64(d)))
	}
	centre = stats.HodgesLehmann(offs).Value
	for i := range offs {
		offs[i] = clipped(offs[i] - centre)
	}
	return centre, offs
}

// borrowed is how many logins' worth a kind of login takes from all others about
// how much it varies.
const borrowed = 10

// figure is the location of a kind's CPU times (Hodges and Lehmann), with the
// interval that its own deviation and that of all kinds tell: with ten logins of
// its own it would be a third wider.
func (v shared) figure(all []time.Duration) Figure {
	if len(all) == 0 {
		return Figure{}
	}
	centre, offs := centred(all)
	own := float64(len(all) - 1)
	lent := min(borrowed, v.degrees)
	variance := 0.0
	if own > 0 {
		variance = (own*stats.Variance(offs) + lent*v.deviation*v.deviation) / (own + lent)
	}
	arm := stats.StudentQuantile(own+lent) * math.Sqrt(variance/float64(len(all)))
	return Figure{math.Exp(centre), math.Exp(centre - arm), math.Exp(centre + arm), len(all)}
}
