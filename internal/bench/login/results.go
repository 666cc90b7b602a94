package login

import (
	"math"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// figures returns the medians of durations, a group for each kind of login. The interval is that of
// order statistics; for fewer than stats.MinExact it is Student's, from the variation of the kind's
// logarithms and, with borrowed degrees of freedom, that of all others. Two logins alone have their
// range.
func figures(groups [][]time.Duration) (medians []stats.Interval) {
	var values, logs [][]float64
	for _, g := range groups {
		var xs, ys []float64
		for _, d := range g {
			xs, ys = append(xs, float64(d)), append(ys, math.Log(float64(max(d, time.Microsecond))))
		}
		values, logs = append(values, xs), append(logs, ys)
	}
	common, all := stats.PooledDeviation(logs)
	for i, xs := range values {
		m := stats.MedianInterval(xs)
		if 0 < m.N && m.N < stats.MinExact {
			others := all - float64(len(xs)-1)
			if e := stats.Medians(logs[i:i+1], common, min(borrowed, others))[0]; e.DF >= 2 && m.Value > 0 {
				e.Log = math.Log(m.Value)
				m = nanoseconds(e)
			}
		}
		medians = append(medians, m)
	}
	return medians
}

// Names of factors. Logins of one factor differ in nothing else.
const (
	KexFactor        = "key exchange"
	HostKeyFactor    = "host key"
	UserKeyFactor    = "user key"
	SourceFactor     = "where the key is"
	KnownHostsFactor = "known_hosts"
	SettingFactor    = "ssh_config"
	ServerFactor     = "sshd_config"
	ConnectionFactor = "connection"
	ClientFactor     = "client"
	FullFactor       = "key exchange, host key, user key"
)

// KeptLevel is a session on the connection of the user's own master, among connections.
const KeptLevel = "kept connection"

// Result is the cost of a case.
type Result struct {
	Factor    string                   `json:"factor"`
	Level     string                   `json:"level"`
	Wall      stats.Interval           `json:"wall_ns"`
	ClientCPU stats.Interval           `json:"client_cpu_ns"`
	ServerCPU *stats.Interval          `json:"server_cpu_ns,omitempty"`
	Phases    map[Phase]stats.Interval `json:"phases_ns"`
	Wire      *Wire                    `json:"wire,omitempty"` // of the login of median length
	Mean      map[Phase]float64        `json:"-"`              // sums to MeanWall
	MeanWall  float64                  `json:"-"`
	Failure   string                   `json:"failure,omitempty"` // why it was not, or not always, carried out; by the server in part
}

// Beside is the CPU time of simultaneous logins on one core, relative to logins alone. The figures
// of kinds do not include it.
type Beside struct {
	Client stats.Interval `json:"client_cpu_ratio"`
	Server stats.Interval `json:"server_cpu_ratio"`
}

// Prediction is the wall time of a login at a round-trip time: predicted, not measured.
type Prediction struct {
	RTT time.Duration `json:"rtt_ns"`
	NS  time.Duration `json:"ns"`
}

// Distances are the round-trip times that logins are predicted for.
var Distances = []time.Duration{200 * time.Microsecond, 10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// kindOf is the number of a kind of login, from 0, the plain one.
type kindOf = int

// summarized returns the results of kinds, from the logins in the order of time, the kind of each,
// and the kind whose logins count for each kind; and the CPU time of simultaneous logins relative
// to those alone.
func summarized(of []record.Subject, alike, kinds []kindOf, logins []*record.Reading) (out []Result, beside Beside) {
	costs := costsOf(kinds, logins)
	undisturbed := make([][]*record.Reading, len(of)) // those alone
	for i, l := range logins {
		if coreOf(l) == alone {
			undisturbed[kinds[i]] = append(undisturbed[kinds[i]], l)
		}
	}
	walls, phases := times(undisturbed)
	for i, name := range of {
		of := alike[i]
		r := Result{Factor: name.Factor, Level: name.Level, Wall: walls[of], ClientCPU: costs.of[0][of], Phases: map[Phase]stats.Interval{}, Mean: map[Phase]float64{}}
		if server, known := costs.of[1][of]; known {
			r.ServerCPU = &server
		}
		for p, figures := range phases {
			if figures[of].N > 0 {
				r.Phases[p] = figures[of]
			}
		}
		r.average(undisturbed[of])
		r.Wire = typical(undisturbed[of], r.Wall.Value)
		out = append(out, r)
	}
	return out, Beside{costs.beside[0], costs.beside[1]}
}

// times returns the durations of the logins of each kind, and their phases.
func times(logins [][]*record.Reading) (walls []stats.Interval, phases map[Phase][]stats.Interval) {
	whole, parts := make([][]time.Duration, len(logins)), map[Phase][][]time.Duration{}
	for kind, all := range logins {
		for _, l := range all {
			whole[kind] = append(whole[kind], l.WallNS)
			for _, s := range l.Phases {
				p := s.Phase
				if parts[p] == nil {
					parts[p] = make([][]time.Duration, len(logins))
				}
				parts[p][kind] = append(parts[p][kind], s.WallNS)
			}
		}
	}
	phases = map[Phase][]stats.Interval{}
	for p, groups := range parts {
		phases[p] = figures(groups)
	}
	return figures(whole), phases
}

// average sets the mean times of the logins: of the whole and of each phase.
func (r *Result) average(all []*record.Reading) {
	for _, l := range all {
		r.MeanWall += float64(l.WallNS) / float64(len(all))
		for _, s := range l.Phases {
			r.Mean[s.Phase] += float64(s.WallNS) / float64(len(all))
		}
	}
}

// typical returns the traffic of the login whose time is closest to the median, among those with as
// many stalls as most have: the stamps of a busy machine may miss one.
func typical(all []*record.Reading, median float64) (w *Wire) {
	stalls := mostStalls(all)
	best := math.Inf(1)
	for _, l := range all {
		if off := math.Abs(float64(l.WallNS) - median); l.UpBytes > 0 && len(l.Stalls) == stalls && off < best {
			w, best = &Wire{l.UpBytes, l.DownBytes, append([]record.LoginStall{}, l.Stalls...)}, off
		}
	}
	return w
}

// mostStalls returns the number of stalls that most logins have; of two equally frequent numbers,
// the larger one.
func mostStalls(all []*record.Reading) (stalls int) {
	count := map[int]int{}
	for _, l := range all {
		if l.UpBytes > 0 {
			count[len(l.Stalls)]++
		}
	}
	most := 0
	for n, times := range count {
		if times > most || times == most && n > stalls {
			stalls, most = n, times
		}
	}
	return stalls
}

// Predict returns the login at distances: the computation stays, and each round trip adds its time;
// stalls of the measured path are still part of it.
func (r *Result) Predict(trips int) (out []Prediction) {
	for _, rtt := range Distances {
		out = append(out, Prediction{rtt, time.Duration(r.Wall.Value) + time.Duration(trips)*rtt})
	}
	return out
}
