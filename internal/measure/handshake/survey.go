package handshake

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
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

// costOf is the location of CPU times: the median of the means of pairs (Hodges
// and Lehmann), which is as robust and needs fewer logins than the median.
func costOf(all []time.Duration) Figure {
	xs := make([]float64, len(all))
	for i, d := range all {
		xs[i] = float64(d)
	}
	if len(xs) == 0 {
		return Figure{}
	}
	m := stats.HodgesLehmann(xs)
	return Figure{m.Value, m.Lo, m.Hi, len(xs)}
}

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

// Survey carries out cases. What fails is not tried again. When ctx ends, the
// results so far are returned with its error; there are none before every case was
// carried out once.
func (e *Ends) Survey(ctx context.Context, cases []Case, p Plan) ([]Result, error) {
	s := &survey{ends: e, cases: cases, plan: p, logins: make([][]*observed, len(cases)), failures: make([]error, len(cases))}
	if p.Note == nil {
		s.plan.Note = func(record.Record) error { return nil }
	}
	err := s.kinds()
	if err == nil {
		err = s.rounds(ctx)
	}
	if err != nil && slices.ContainsFunc(s.logins, func(l []*observed) bool { return len(l) == 0 }) {
		return nil, err
	}
	var out []Result
	for i, c := range cases {
		r := summarize(c, s.logins[i])
		if s.failures[i] != nil {
			r.Failure = s.failures[i].Error()
		}
		out = append(out, r)
	}
	return out, err
}

// survey is a Survey under way.
type survey struct {
	ends     *Ends
	cases    []Case
	plan     Plan
	logins   [][]*observed
	failures []error
	made     int
}

func (s *survey) rounds(ctx context.Context) error {
	order := rand.New(rand.NewPCG(s.plan.Seed, 0))
	began := time.Now()
	for n := 1; ; n++ {
		for _, i := range order.Perm(len(s.cases)) {
			if err := s.login(ctx, i); err != nil {
				return err
			}
		}
		spent := time.Since(began)
		if s.plan.Rounds > 0 && n >= s.plan.Rounds || s.plan.Rounds == 0 && n > 1 && spent+spent/time.Duration(n) > s.plan.Budget {
			return nil
		}
	}
}

// login carries out case i once.
func (s *survey) login(ctx context.Context, i int) error {
	if s.failures[i] != nil {
		return nil
	}
	if s.made > 0 && !sleep(ctx, s.plan.Pause) {
		return context.Canceled
	}
	s.made++
	began := time.Now()
	l, err := s.ends.Watch(ctx, s.cases[i].Argv)
	o := &observed{Login: l}
	if s.cases[i].After != nil {
		o.server, o.wire = s.cases[i].After(ctx)
	}
	failed := (*FailedError)(nil)
	if !errors.As(err, &failed) && err != nil {
		return err
	}
	if noted := s.plan.Note(record.Record{LoginRun: o.record(i+1, began, err)}); noted != nil {
		return noted
	}
	switch {
	case err == nil:
		s.logins[i] = append(s.logins[i], o)
	case s.plan.Strict || i == 0: // without the plain login there is nothing to compare with
		return err
	default:
		s.failures[i] = err
	}
	return nil
}

// kinds notes what is to be measured.
func (s *survey) kinds() error {
	for i, c := range s.cases {
		k := record.LoginKind{ID: i + 1, Factor: c.Factor, Level: c.Level, Conditions: s.plan.Conditions}
		if i == 0 {
			k.Conditions, k.RoundTrips = "", s.plan.RoundTrips
		}
		if err := s.plan.Note(record.Record{LoginKind: &k}); err != nil {
			return err
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// observed is a login with what the other side tells.
type observed struct {
	*Login
	server time.Duration
	wire   *Wire
}

func summarize(c Case, all []*observed) Result {
	r := Result{Factor: c.Factor, Level: c.Level, Phases: map[Phase]Figure{}, Mean: map[Phase]float64{}}
	var wall, client, server []time.Duration
	phases := map[Phase][]time.Duration{}
	for _, o := range all {
		wall, client = append(wall, o.Whole), append(client, o.ClientCPU)
		r.MeanWall += float64(o.Whole) / float64(len(all))
		if o.server > 0 {
			server = append(server, o.server)
		}
		for _, s := range o.Spans {
			phases[s.Phase] = append(phases[s.Phase], s.NS)
			r.Mean[s.Phase] += float64(s.NS) / float64(len(all))
		}
	}
	r.Wall, r.ClientCPU = FigureOf(wall), costOf(client)
	if len(server) > 0 {
		f := costOf(server)
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
