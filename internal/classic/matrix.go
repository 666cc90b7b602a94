package classic

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// combination is one row of the naive matrix: a cipher, a MAC and a key exchange, with the time of
// a copy. MAC is "" where the cipher ignores it, so that one row stands for all MACs.
type combination struct {
	Suite   alg.Suite
	Seconds stats.Interval
	Basis   rank.Basis // Predicted also where only the transfer or the login was measured
	Names   int        // combinations in the row: one for every MAC that the cipher ignores
}

// matrix is the whole naive matrix in one direction, fastest first.
type matrix struct {
	Rows      []combination
	Direction record.Direction
	Size      unit.Bytes
	Total     int  // combinations in all rows
	Logins    bool // the seconds hold a login
	Copied    bool // every row was timed as a whole process of that size
}

var errNone = errors.New("the file has no transfers to rebuild the combinations from")

// matrixOf computes the seconds that a copy of size bytes in one direction takes with every
// combination: login(kex) + overhead + size·(ns per byte)(cipher, MAC) + rekeys·rekey(kex). Where
// an exhaustive run measured copies of exactly that size, it uses those.
func matrixOf(r *rank.Ranking, d record.Direction, size unit.Bytes) *matrix {
	m := &matrix{Direction: d, Size: size, Logins: len(r.Kex) > 0}
	if m.Copied = len(r.Copies) > 0 && r.Campaign.SizeBytes == size; m.Copied {
		m.Rows = copied(r, d)
	} else {
		m.Rows = rebuilt(r, d, size)
	}
	for i := range m.Rows {
		m.Rows[i].Names = 1
		if m.Rows[i].Suite.MAC == "" && !m.Copied {
			m.Rows[i].Names = max(1, len(r.Campaign.Offer.MACs))
		}
		m.Total += m.Rows[i].Names
	}
	slices.SortStableFunc(m.Rows, func(a, b combination) int {
		return cmp.Or(cmp.Compare(a.Seconds.Value, b.Seconds.Value), cmp.Compare(a.Suite.String(), b.Suite.String()))
	})
	return m
}

func copied(r *rank.Ranking, d record.Direction) []combination {
	var rows []combination
	for _, c := range r.Copies {
		if c.Direction == d {
			rows = append(rows, combination{Suite: c.Suite, Seconds: c.Seconds, Basis: rank.Measured})
		}
	}
	return rows
}

func rebuilt(r *rank.Ranking, d record.Direction, size unit.Bytes) []combination {
	var rows []combination
	logins := r.Kex
	if len(logins) == 0 {
		logins = []rank.Exchange{{}} // without logins, the transfer alone
	}
	cheapest := math.Inf(1)
	for _, k := range logins {
		if k.Login.Known() {
			cheapest = math.Min(cheapest, k.Login.Value())
		}
	}
	for _, c := range r.In(d) {
		if !c.Throughput.Known() {
			continue
		}
		for _, k := range logins {
			for _, name := range append([]string{k.Name}, k.Aliases...) {
				suite := c.Suite
				suite.Kex = name
				q := copySeconds(c, k, cheapest, size).Shifted(r.OverheadNS / 1e9)
				rows = append(rows, combination{Suite: suite, Seconds: q, Basis: c.Basis})
			}
		}
	}
	return rows
}

// leastRekey is the least assumed cost of a key exchange inside a connection, in ns: a round trip
// and the cheapest curve.
const leastRekey = 1e6

// copySeconds adds up one copy. A rekey costs as much as the key exchange adds to a login over the
// cheapest one; logins show no more than that.
func copySeconds(c rank.Cell, k rank.Exchange, cheapest float64, size unit.Bytes) stats.Interval {
	transfer := float64(size) / c.Throughput.Value()
	arm := transfer * c.Throughput.Shown.HalfWidth()
	total, n := transfer, c.Throughput.N
	if login := k.Login.Shown; login != nil {
		rekey := math.Max(leastRekey, login.Value-cheapest)
		total += (login.Value + rekeys(c.Suite.Cipher, size)*rekey) / 1e9
		arm = math.Hypot(arm, login.HalfWidth()*login.Value/1e9)
		n = min(n, login.N)
	}
	return stats.Interval{Value: total, Lo: math.Max(0, total-arm), Hi: total + arm, N: n}
}

// rekeys returns how often OpenSSH renews the keys during size bytes.
func rekeys(cipher string, size unit.Bytes) float64 {
	a, _ := alg.Lookup(alg.Cipher, cipher)
	if a.RekeyBytes <= 0 {
		return 0
	}
	return float64((int64(size) - 1) / a.RekeyBytes)
}
