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
	for i, group := range stats.Group(estimates) {
		r.Kex[i].Rank, r.Kex[i].Group = i+1, stats.Letters(group)
	}
	r.Controls = d.controls()
}

// What logins of one key exchange are taken to differ by before any was made
// twice, and the degrees of freedom that this guess is worth.
const (
	usualDeviation = 0.05
	usualDegrees   = 2
)

// alike are the means of groups of logarithms that share one deviation: that of five logins is a poor guess.
func alike(groups [][]float64) []stats.Estimate {
	return stats.Grouped(groups, usualDeviation, usualDegrees)
}

// medians are those of the logins of each key exchange, by name. floor is the difference of two equal
// key exchanges that 95 % of runs stay below, in percent; 0 if unknown.
func medians(all []login, value func(login) float64) (out map[string]stats.Estimate, floor float64) {
	logs := map[string][]float64{}
	for _, l := range all {
		if v := value(l); v > 0 {
			logs[l.kex] = append(logs[l.kex], math.Log(v))
		}
	}
	var groups [][]float64
	var errs []float64
	names := slices.Sorted(maps.Keys(logs))
	for _, name := range names {
		groups = append(groups, logs[name])
	}
	out = map[string]stats.Estimate{}
	for i, e := range alike(groups) {
		e.Log, e.Err = stats.Median(groups[i]), e.Err*stats.MedianEfficiency
		out[names[i]], errs = e, append(errs, e.Err)
	}
	return out, 100 * math.Expm1(stats.Estimate{Err: stats.Median(errs)}.Repeated().Arm())
}

// Control is one hidden A/A comparison: one key exchange under two names.
type Control struct {
	A         alg.Suite `json:"a"`
	B         alg.Suite `json:"b"`
	Ratio     Quantity  `json:"ratio"`     // B relative to A
	Separated bool      `json:"separated"` // the run took them for different: it should not
}

// controls compares the alias names of one key exchange with each other.
func (d *data) controls() []Control {
	type pair struct {
		kex string
		id  int
	}
	first, of, logs := map[pair]login{}, map[string]Control{}, map[string][]float64{}
	for _, l := range d.logins {
		id := pair{l.kex, l.trial.Pair}
		if l.trial.Role != record.RoleControl || id.id == 0 {
			continue
		}
		a, second := first[id]
		if !second {
			first[id] = l
			continue
		}
		delete(first, id)
		b := l
		if a.trial.Offered != (alg.Suite{}) { // it was asked for by the other name
			a, b = b, a
		}
		of[l.kex] = Control{A: alg.Suite{Kex: a.trial.Asked().Kex}, B: alg.Suite{Kex: b.trial.Asked().Kex}}
		logs[l.kex] = append(logs[l.kex], math.Log(float64(b.LoginNS)/float64(a.LoginNS)))
	}
	var out []Control
	var groups [][]float64
	for _, kex := range slices.Sorted(maps.Keys(of)) {
		out, groups = append(out, of[kex]), append(groups, logs[kex])
	}
	ratios := alike(groups)
	for i, judged := range stats.Judge(ratios) {
		out[i].Ratio, out[i].Separated = ratios[i].Interval(), judged.Verdict.Differs()
	}
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
