package rank

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// rankKex fills and orders the key exchanges. People wait for login time; if that is too noisy, or
// the user wants it, the CPU time of both sides orders them.
func (r *Ranking) rankKex(d *data, space alg.Space, by By) {
	time, floor := medians(d.logins, func(p *record.Phases) float64 { return float64(p.LoginNS) })
	client, _ := medians(d.logins, func(p *record.Phases) float64 { return cpu(p.ClientCPUNS) })
	server, _ := medians(d.logins, func(p *record.Phases) float64 { return cpu(p.ServerCPUNS) })
	seen := slices.ContainsFunc(d.logins, func(l record.Result) bool { return l.Sample.Phases.ServerCPUNS != nil })
	total, totalFloor := medians(d.logins, func(p *record.Phases) float64 {
		if p.ClientCPUNS == nil || p.ServerCPUNS == nil && seen { // a login without its server is not cheaper
			return 0
		}
		return cpu(p.ClientCPUNS) + cpu(p.ServerCPUNS)
	})
	r.Noise.Login, r.KexBy = floor, Throughput
	known := totalFloor > 0
	if by == Cost && known || by != Throughput && known && floor > maxNoise && totalFloor < floor {
		r.KexBy = Cost
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
			Login: time[id], Sides: Sides{client[id], server[id], total[id]},
		})
	}
	key := func(x Exchange) stats.Estimate { return pick(r.KexBy, x.Total, x.Login).Estimate }
	order(r.Kex, key, func(x *Exchange, rank int, group string) { x.Rank, x.Group = rank, group })
	r.Controls = d.controls()
}

// kexOf returns the key exchange of a trial, by its canonical name.
func kexOf(l record.Result) string { return alg.Canonical(alg.Kex, l.Trial.Want.Kex) }

// The assumed variation of logins of one key exchange before any was made twice, and the degrees of
// freedom of this guess.
const (
	usualDeviation = 0.05
	usualDegrees   = 2
)

// alike returns the means of groups of logarithms that share one deviation: that of five logins is
// a poor guess.
func alike(groups [][]float64) []stats.Estimate {
	return stats.Grouped(groups, usualDeviation, usualDegrees)
}

// medians returns the median of the logins of each key exchange, by name. floor is the difference
// of two equal key exchanges that 95 % of runs stay below, in percent; 0 if unknown.
func medians(all []record.Result, value func(*record.Phases) float64) (out map[string]Figure, floor float64) {
	logs := map[string][]float64{}
	for _, l := range all {
		if v := value(l.Sample.Phases); v > 0 {
			logs[kexOf(l)] = append(logs[kexOf(l)], math.Log(v))
		}
	}
	var groups [][]float64
	var errs []float64
	names := slices.Sorted(maps.Keys(logs))
	for _, name := range names {
		groups = append(groups, logs[name])
	}
	out = map[string]Figure{}
	for i, e := range stats.Medians(groups, usualDeviation, usualDegrees) {
		out[names[i]], errs = Figure{e, e.OrNil()}, append(errs, e.Err)
	}
	return out, 100 * math.Expm1(stats.Estimate{Err: stats.Median(errs)}.Repeated().Arm())
}

// Control is one hidden A/A comparison: one key exchange under two names.
type Control struct {
	A         alg.Suite      `json:"a"`
	B         alg.Suite      `json:"b"`
	Ratio     stats.Interval `json:"ratio"`     // B relative to A
	Separated bool           `json:"separated"` // the run took them for different: it should not
}

// controls compares the alias names of one key exchange with each other.
func (d *data) controls() []Control {
	type pair struct {
		kex string
		id  int
	}
	first, of, logs := map[pair]record.Result{}, map[string]Control{}, map[string][]float64{}
	for _, l := range d.logins {
		id := pair{kexOf(l), l.Trial.Pair}
		if l.Trial.Role != record.RoleControl || id.id == 0 {
			continue
		}
		a, second := first[id]
		if !second {
			first[id] = l
			continue
		}
		delete(first, id)
		b := l
		if a.Trial.Offered != (alg.Suite{}) { // the control used the other name
			a, b = b, a
		}
		of[id.kex] = Control{A: alg.Suite{Kex: a.Trial.Asked().Kex}, B: alg.Suite{Kex: b.Trial.Asked().Kex}}
		logs[id.kex] = append(logs[id.kex], math.Log(float64(b.Sample.Phases.LoginNS)/float64(a.Sample.Phases.LoginNS)))
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

// overhead returns the time of copies of one byte beyond a login with their key exchange, in ns.
func (r *Ranking) overhead(d *data) float64 {
	for _, k := range r.Kex {
		var beyond []float64
		for _, o := range d.overheads {
			if kexOf(o) == alg.Canonical(alg.Kex, k.Name) {
				beyond = append(beyond, float64(o.Sample.ElapsedNS)-k.Login.Value())
			}
		}
		if len(beyond) > 0 {
			return math.Max(0, stats.Median(beyond))
		}
	}
	return 0
}
