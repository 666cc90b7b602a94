package rank

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/stats"
)

// rankKex fills and orders the key exchanges.
func (r *Ranking) rankKex(d *data, space alg.Space) {
	login := poolLogins(d.logins, func(p bench.Phases) float64 { return float64(p.LoginNS) })
	client := poolLogins(d.logins, func(p bench.Phases) float64 { return cpu(p.ClientCPUNS) })
	server := poolLogins(d.logins, func(p bench.Phases) float64 { return cpu(p.ServerCPUNS) })
	for _, name := range space.Kex {
		id := alg.Canonical(alg.Kex, name)
		if login[id] == nil {
			continue
		}
		a, _ := alg.Lookup(alg.Kex, name)
		r.Kex = append(r.Kex, Exchange{
			Name: name, Aliases: space.Alias[name], Status: a.Status, PostQuantum: a.PostQuantum,
			Login: login[id], Client: client[id], Server: server[id],
		})
	}
	r.KexBy = Throughput
	slices.SortStableFunc(r.Kex, func(a, b Exchange) int { return cmp.Compare(a.Login.Value, b.Login.Value) })
	for i := range r.Kex {
		r.Kex[i].Rank = i + 1
	}
}

// poolLogins gives each key exchange its median login. From stats.MinExact
// logins on its interval is that of order statistics, below a pooled one.
func poolLogins(logins map[string][]bench.Phases, value func(bench.Phases) float64) map[string]*Quantity {
	logs := map[string][]float64{}
	var groups [][]float64
	for kex, phases := range logins {
		for _, p := range phases {
			if v := value(p); v > 0 {
				logs[kex] = append(logs[kex], math.Log(v))
			}
		}
		groups = append(groups, logs[kex])
	}
	deviation, degrees := stats.PooledDeviation(groups)
	out := map[string]*Quantity{}
	for kex, xs := range logs {
		q := stats.MedianInterval(xs)
		if len(xs) < stats.MinExact {
			q = stats.PooledInterval(xs, deviation, degrees)
		}
		q = q.Exp()
		out[kex] = &q
	}
	return out
}

func cpu(d *time.Duration) float64 {
	if d == nil {
		return 0
	}
	return float64(*d)
}
