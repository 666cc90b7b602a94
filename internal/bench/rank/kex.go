package rank

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// rankKex fills and orders the key exchanges. Login time is what a person
// waits for; where it is too noisy, or asked for, the CPU time of both sides orders
// them.
func (r *Ranking) rankKex(d *data, space alg.Space, by By) {
	time := logins(d.logins, func(p login) float64 { return float64(p.LoginNS) })
	client := logins(d.logins, func(p login) float64 { return cpu(p.ClientCPUNS) })
	server := logins(d.logins, func(p login) float64 { return cpu(p.ServerCPUNS) })
	total := logins(d.logins, func(p login) float64 {
		if p.ClientCPUNS == nil {
			return 0
		}
		return cpu(p.ClientCPUNS) + cpu(p.ServerCPUNS)
	})
	r.Noise.Login = time.floor()
	r.KexBy = Throughput
	key := time
	known := total.floor() > 0
	if by == Cost && known || by != Throughput && known && r.Noise.Login > maxNoise && total.floor() < r.Noise.Login {
		r.KexBy, key = Cost, total
	}
	for _, name := range space.Kex {
		id := alg.Canonical(alg.Kex, name)
		if time.quantities[id] == nil {
			if len(d.copies) == 0 && !slices.ContainsFunc(r.Failed, func(f Failure) bool { return alg.Canonical(alg.Kex, f.Suite.Kex) == id }) {
				r.Waiting = append(r.Waiting, name)
			}
			continue
		}
		a, _ := alg.Lookup(alg.Kex, name)
		r.Kex = append(r.Kex, Exchange{
			Name: name, Aliases: space.Alias[name], Status: a.Status, PostQuantum: a.PostQuantum,
			Login: time.quantities[id], Client: client.quantities[id], Server: server.quantities[id],
			Within: ExchangeFigures{time.known(id), client.known(id), total.known(id)},
		})
	}
	at := func(x Exchange) stats.Estimate { return key.estimate(alg.Canonical(alg.Kex, x.Name)) }
	slices.SortStableFunc(r.Kex, func(a, b Exchange) int { return cmp.Compare(at(a).Log, at(b).Log) })
	estimates := make([]stats.Estimate, len(r.Kex))
	for i, x := range r.Kex {
		estimates[i] = at(x)
	}
	for i, group := range stats.Group(estimates, nil) {
		r.Kex[i].Rank, r.Kex[i].Group = i+1, stats.Letters(group)
	}
	r.Controls = kexControls(d)
}

// loginSeries is one quantity of all key exchanges.
type loginSeries struct {
	quantities map[string]*Quantity
	deviation  float64 // pooled, of the logarithms
	typical    float64 // logins of a typical key exchange
}

// What logins of one key exchange are taken to differ by before any was made
// twice, and the degrees of freedom that this guess is worth.
const (
	priorDeviation = 0.05
	priorDegrees   = 2
)

// withPrior is a pooled deviation that has seen few degrees of freedom, or none.
func withPrior(deviation, degrees float64) (float64, float64) {
	all := degrees + priorDegrees
	return math.Sqrt((degrees*deviation*deviation + priorDegrees*priorDeviation*priorDeviation) / all), all
}

// logins gives each key exchange its median. From stats.MinExact logins on,
// the interval is that of order statistics, below a pooled one.
func logins(all []login, value func(login) float64) loginSeries {
	logs := map[string][]float64{}
	var names []string
	for _, l := range all {
		if v := value(l); v > 0 {
			if logs[l.kex] == nil {
				names = append(names, l.kex)
			}
			logs[l.kex] = append(logs[l.kex], math.Log(v))
		}
	}
	var groups [][]float64
	var counts []float64
	for _, name := range names {
		groups = append(groups, logs[name])
		counts = append(counts, float64(len(logs[name])))
	}
	if len(names) == 0 {
		return loginSeries{quantities: map[string]*Quantity{}}
	}
	deviation, degrees := withPrior(stats.PooledDeviation(groups))
	out := loginSeries{map[string]*Quantity{}, deviation, stats.Median(counts)}
	for i, name := range names {
		q := stats.MedianInterval(groups[i])
		if q.N < stats.MinExact {
			arm := stats.StudentQuantile(degrees) * deviation * stats.MedianEfficiency / math.Sqrt(float64(q.N))
			q.Lo, q.Hi = q.Value-arm, q.Value+arm
		}
		q = q.Exp()
		out.quantities[name] = &q
	}
	return out
}

// floor is the difference of two equal key exchanges that 95 % of runs stay
// below, in percent; 0 if unknown.
func (s loginSeries) floor() float64 {
	if s.typical == 0 || s.deviation == 0 {
		return 0
	}
	return 100 * math.Expm1(normal95*math.Sqrt2*s.deviation*stats.MedianEfficiency/math.Sqrt(s.typical))
}

// known is the estimate of a key exchange, with the degrees of freedom of all.
func (s loginSeries) known(name string) stats.Estimate {
	q := s.quantities[name]
	if q == nil {
		return stats.Estimate{}
	}
	e := s.estimate(name)
	e.N = q.N
	return e
}

func (s loginSeries) estimate(name string) stats.Estimate {
	q := s.quantities[name]
	if q == nil {
		return stats.Estimate{Log: math.MaxFloat32, Err: 1}
	}
	return stats.Estimate{Log: math.Log(q.Value), Err: s.deviation * stats.MedianEfficiency / math.Sqrt(float64(q.N))}
}

// kexControls compares the alias names of one key exchange with each other.
func kexControls(d *data) []Control {
	halves := map[string]map[int][2]login{}
	for _, l := range d.logins {
		if l.trial.Role != record.RoleControl || l.trial.Pair == 0 {
			continue
		}
		if halves[l.kex] == nil {
			halves[l.kex] = map[int][2]login{}
		}
		two := halves[l.kex][l.trial.Pair]
		two[one(l.trial.Offered != alg.Suite{})] = l
		halves[l.kex][l.trial.Pair] = two
	}
	var out []Control
	var groups [][]float64
	for _, kex := range slices.Sorted(maps.Keys(halves)) {
		var logs []float64
		c := Control{}
		for _, id := range slices.Sorted(maps.Keys(halves[kex])) {
			two := halves[kex][id]
			if a, b := two[0].LoginNS, two[1].LoginNS; a > 0 && b > 0 {
				logs = append(logs, math.Log(float64(b)/float64(a)))
				c.A, c.B = alg.Suite{Kex: two[0].trial.Asked().Kex}, alg.Suite{Kex: two[1].trial.Asked().Kex}
			}
		}
		if len(logs) > 0 {
			out, groups = append(out, c), append(groups, logs)
		}
	}
	separate(out, groups)
	return out
}
