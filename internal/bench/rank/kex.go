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
	time, floor := medians(d.logins, func(p login) float64 { return float64(p.LoginNS) })
	client, _ := medians(d.logins, func(p login) float64 { return cpu(p.ClientCPUNS) })
	server, _ := medians(d.logins, func(p login) float64 { return cpu(p.ServerCPUNS) })
	total, totalFloor := medians(d.logins, func(p login) float64 {
		if p.ClientCPUNS == nil {
			return 0
		}
		return cpu(p.ClientCPUNS) + cpu(p.ServerCPUNS)
	})
	r.Noise.Login, r.KexBy = floor, Throughput
	key := time
	known := totalFloor > 0
	if by == Cost && known || by != Throughput && known && floor > maxNoise && totalFloor < floor {
		r.KexBy, key = Cost, total
	}
	for _, name := range space.Kex {
		id := alg.Canonical(alg.Kex, name)
		if !time[id].Known() {
			if len(d.copies) == 0 && !slices.ContainsFunc(r.Failed, func(f Failure) bool { return alg.Canonical(alg.Kex, f.Kex) == id }) {
				r.Waiting = append(r.Waiting, name)
			}
			continue
		}
		a, _ := alg.Lookup(alg.Kex, name)
		r.Kex = append(r.Kex, Exchange{
			Name: name, Aliases: space.Alias[name], Status: a.Status, PostQuantum: a.PostQuantum,
			Login: time[id].OrNil(), Client: client[id].OrNil(), Server: server[id].OrNil(),
			Within: ExchangeFigures{time[id], client[id], total[id]},
		})
	}
	at := func(x Exchange) stats.Estimate {
		if e := key[alg.Canonical(alg.Kex, x.Name)]; e.Known() {
			return e
		}
		return stats.Estimate{Log: math.MaxFloat32, Err: 1}
	}
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

// What logins of one key exchange are taken to differ by before any was made
// twice, and the degrees of freedom that this guess is worth.
const (
	usualDeviation = 0.05
	usualDegrees   = 2
)

// deviationOf is the deviation within groups that share one, of logarithms.
func deviationOf(groups [][]float64) (deviation, degrees float64) {
	own, degrees := stats.PooledDeviation(groups)
	return stats.Shrink(own, degrees, usualDeviation, usualDegrees)
}

// medians are those of the logins of each key exchange, by name. Their errors rest on the
// deviation of all: that of five logins is a poor guess. floor is the difference of two equal
// key exchanges that 95 % of runs stay below, in percent; 0 if unknown.
func medians(all []login, value func(login) float64) (out map[string]stats.Estimate, floor float64) {
	logs := map[string][]float64{}
	for _, l := range all {
		if v := value(l); v > 0 {
			logs[l.kex] = append(logs[l.kex], math.Log(v))
		}
	}
	if len(logs) == 0 {
		return nil, 0
	}
	var groups [][]float64
	var counts []float64
	names := slices.Sorted(maps.Keys(logs))
	for _, name := range names {
		groups, counts = append(groups, logs[name]), append(counts, float64(len(logs[name])))
	}
	deviation, degrees := deviationOf(groups)
	deviation *= stats.MedianEfficiency
	out = map[string]stats.Estimate{}
	for i, name := range names {
		out[name] = stats.Estimate{Log: stats.Median(groups[i]), Err: deviation / math.Sqrt(counts[i]), DF: degrees, N: len(groups[i])}
	}
	return out, 100 * math.Expm1(normal95*math.Sqrt2*deviation/math.Sqrt(stats.Median(counts)))
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

// overhead is what copies of one byte took beyond a login with their key
// exchange, in ns.
func (r *Ranking) overhead(d *data) float64 {
	var elapsed []float64
	var kex string
	for _, o := range d.overheads {
		elapsed = append(elapsed, float64(o.sample.ElapsedNS))
		kex = alg.Canonical(alg.Kex, o.trial.Want.Kex)
	}
	for _, k := range r.Kex {
		if alg.Canonical(alg.Kex, k.Name) == kex && k.Login != nil && len(elapsed) > 0 {
			return math.Max(0, stats.Median(elapsed)-k.Login.Value)
		}
	}
	return 0
}
