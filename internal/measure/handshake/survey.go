package handshake

import (
	"slices"
	"time"

	"sshpace/internal/base/stats"
)

// Figure is a median, or a location as good, with the 95 % interval of it, in nanoseconds.
type Figure struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	N     int     `json:"n"`
}

// FigureOf is the median of durations.
func FigureOf(all []time.Duration) Figure {
	xs := make([]float64, len(all))
	for i, d := range all {
		xs[i] = float64(d)
	}
	if len(xs) == 0 {
		return Figure{}
	}
	m := stats.MedianInterval(xs)
	return Figure{m.Value, m.Lo, m.Hi, len(xs)}
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

// named is what a kind of login is called.
type named struct{ factor, level string }

// Result is what a case costs.
type Result struct {
	Factor    string            `json:"factor"`
	Level     string            `json:"level"`
	Wall      Figure            `json:"wall_ns"`
	ClientCPU Figure            `json:"client_cpu_ns"`
	ServerCPU *Figure           `json:"server_cpu_ns,omitempty"`
	Phases    map[Phase]Figure  `json:"phases_ns"`
	Wire      *Wire             `json:"wire,omitempty"` // of the login of median length
	Mean      map[Phase]float64 `json:"-"`              // sums to MeanWall
	MeanWall  float64           `json:"-"`
	Failure   string            `json:"failure,omitempty"` // why it was not, or not always, carried out; by the server in part
}

// Beside is how much CPU time logins take while others are on the same core, in
// relation to logins that nothing is beside. The figures of kinds are free of it.
type Beside struct {
	Client Figure `json:"client_cpu_ratio"`
	Server Figure `json:"server_cpu_ratio"`
}

// Prediction is the wall time of a login at a round-trip time:
// predicted, not measured.
type Prediction struct {
	RTT time.Duration `json:"rtt_ns"`
	NS  time.Duration `json:"ns"`
}

// Distances are the round-trip times that logins are predicted for.
var Distances = []time.Duration{200 * time.Microsecond, 10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// observed is a login with what the other side tells.
type observed struct {
	*Login
	began  time.Time
	core   int // that it shared with others at the same time; or alone
	server time.Duration
	wire   *Wire
}

// middle of it, in seconds since a time.
func (o *observed) middle(since time.Time) float64 {
	return (o.began.Sub(since) + o.Whole/2).Seconds()
}

// kinds of logins are numbered from 0, the plain one.
type kindOf = int

// summarized are the results of kinds, from the logins in the order of time, which
// kind each is of, and whose logins count for each kind; and how much CPU
// time logins beside others take of that of those alone.
func summarized(names []named, alike, kinds []kindOf, logins []*observed) (out []Result, beside Beside) {
	cpu := costsOf(kinds, logins)
	of := make([][]*observed, len(names))
	for i, o := range logins {
		of[kinds[i]] = append(of[kinds[i]], o)
	}
	for i, name := range names {
		r := summarize(name, of[alike[i]])
		r.ClientCPU = cpu.of[0][alike[i]]
		if server, known := cpu.of[1][alike[i]]; known {
			r.ServerCPU = &server
		}
		out = append(out, r)
	}
	return out, Beside{cpu.beside[0], cpu.beside[1]}
}

// summarize tells what the logins that nothing was beside tell.
func summarize(name named, all []*observed) Result {
	all = slices.DeleteFunc(slices.Clone(all), func(o *observed) bool { return o.core != alone })

	r := Result{Factor: name.factor, Level: name.level, Phases: map[Phase]Figure{}, Mean: map[Phase]float64{}}
	var wall []time.Duration
	phases := map[Phase][]time.Duration{}
	for _, o := range all {
		wall = append(wall, o.Whole)
		r.MeanWall += float64(o.Whole) / float64(len(all))
		for _, s := range o.Spans {
			phases[s.Phase] = append(phases[s.Phase], s.NS)
			r.Mean[s.Phase] += float64(s.NS) / float64(len(all))
		}
	}
	r.Wall = FigureOf(wall)
	for p, spans := range phases {
		r.Phases[p] = FigureOf(spans)
	}
	r.Wire = typical(all, r.Wall.Value)
	return r
}

// typical is the traffic of the login whose time is closest to the median.
func typical(all []*observed, median float64) (w *Wire) {
	best := -1.0
	for _, o := range all {
		if off := max(float64(o.Whole)-median, median-float64(o.Whole)); o.wire != nil && (best < 0 || off < best) {
			w, best = o.wire, off
		}
	}
	return w
}

// Predict is the login at distances: what is computed stays, each round trip adds
// its time; stalls of the path that was measured are still part of it.
func (r *Result) Predict(trips int) (out []Prediction) {
	for _, rtt := range Distances {
		out = append(out, Prediction{rtt, time.Duration(r.Wall.Value) + time.Duration(trips)*rtt})
	}
	return out
}
