package handshake

import (
	"context"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
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

// Case is one way of logging in.
type Case struct {
	Factor string // what it changes: "" for the plain case
	Level  string
	Argv   ArgvFunc
	// After is called after every login: the server's CPU time (0: not known) and
	// what a relay saw (nil: none).
	After func(ctx context.Context) (time.Duration, *Wire)
}

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

// Prediction is the wall time of a login at a round-trip time:
// predicted, not measured.
type Prediction struct {
	RTT time.Duration `json:"rtt_ns"`
	NS  time.Duration `json:"ns"`
}

// Distances are the round-trip times that logins are predicted for.
var Distances = []time.Duration{200 * time.Microsecond, 10 * time.Millisecond, 50 * time.Millisecond, 150 * time.Millisecond, 300 * time.Millisecond}

// Plan says how often cases are carried out.
type Plan struct {
	Rounds int           // of all cases, each time in another order; 0: what fits into Budget
	Budget time.Duration // at least two rounds are made
	Pause  time.Duration // before each login
	Strict bool          // the first failure ends it, as is right with others' hosts
	Seed   uint64        // of the order
	// Note is given a record of every kind of login and of every login; nil is given
	// none.
	Note       record.Sink
	RoundTrips int    // of the plain login, for its record; 0: not counted
	Conditions string // likewise, of all others
}

// observed is a login with what the other side tells.
type observed struct {
	*Login
	server time.Duration
	wire   *Wire
}

// kinds of logins are numbered from 0, the plain one.
type kindOf = int

// summarized are the results of cases, from the logins in the order of time, which
// of the cases each is one of, and whose logins count for each case.
func summarized(cases []Case, alike, kinds []kindOf, logins []*observed) (out []Result) {
	level(kinds, logins)
	of := make([][]*observed, len(cases))
	for i, o := range logins {
		of[kinds[i]] = append(of[kinds[i]], o)
	}
	var vary [sides]shared
	for s := range side(sides) {
		var groups [][]time.Duration
		for _, all := range of {
			if cpus := cpusOf(all, s); len(cpus) > 0 {
				groups = append(groups, cpus)
			}
		}
		vary[s] = sharedBy(groups)
	}
	for i, c := range cases {
		out = append(out, summarize(c, of[alike[i]], vary))
	}
	return out
}

// cpusOf are the CPU times of a side, where they are known.
func cpusOf(all []*observed, s side) (cpus []time.Duration) {
	for _, o := range all {
		if cpu := *o.cpu(s); cpu > 0 {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

func summarize(c Case, all []*observed, vary [sides]shared) Result {
	r := Result{Factor: c.Factor, Level: c.Level, Phases: map[Phase]Figure{}, Mean: map[Phase]float64{}}
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
	r.Wall, r.ClientCPU = FigureOf(wall), vary[0].figure(cpusOf(all, 0))
	if server := cpusOf(all, 1); len(server) > 0 {
		f := vary[1].figure(server)
		r.ServerCPU = &f
	}
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
