package latency

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/bench/bed"
	"sshpace/internal/ssh/admit"
)

// Sessions are the open lanes of a measurement, and the transfer beside them.
type Sessions struct {
	lanes []*Lane
	load  *Load    // nil: none
	Notes []string // lanes that cannot be measured, with the reason
}

// Check refuses an interval, a direction of a transfer ("": none) and names of lanes that do not
// allow a measurement.
func Check(interval time.Duration, direction string, names []string) error {
	switch {
	case interval < time.Millisecond:
		return fault.Usage("0.001 or more", "--interval %s", interval)
	case direction != "" && direction != Upload && direction != Download:
		return fault.Usage("--load=upload or --load=download", "--load=%s", direction)
	}
	for _, name := range names {
		if !slices.Contains(Lanes(), name) {
			return fault.Usage("there are "+strings.Join(Lanes(), ", "), "unknown session %q", name)
		}
	}
	return nil
}

// OpenAll logs in for each named lane (nil: all), and for a transfer in a direction ("": none), at
// most once a second, and reports each login. Lanes that this ssh cannot do are left out. The
// caller closes the sessions.
func OpenAll(ctx context.Context, b bed.Bed, names []string, direction string, told func(what string)) (_ *Sessions, err error) {
	s := &Sessions{}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	why := b.Destination.Unkept()
	if len(names) == 0 {
		names = slices.DeleteFunc(Lanes(), func(name string) bool { return name == kept && why != "" })
	}
	if i := slices.Index(names, kept); i >= 0 && why != "" {
		names = slices.Delete(slices.Clone(names), i, i+1)
		s.Notes = append(s.Notes, why)
	}
	if i := slices.Index(names, unobscured); i >= 0 && !b.SSH.Knows(ctx, obscuring+"=no") {
		names = slices.Delete(slices.Clone(names), i, i+1)
		s.Notes = append(s.Notes, fmt.Sprintf("this ssh (%s) cannot obscure keystroke timing: OpenSSH can since 9.5", b.SSH.Version))
	}
	ticket := admit.New(admit.OneByOne(admit.HostPause)).Ticket()
	for i, name := range names {
		if ticket.Admit(ctx, b.Destination.Label) != nil {
			return nil, context.Canceled
		}
		told(fmt.Sprintf("session %d of %d: %s", i+1, len(names), name))
		lane, err := Open(ctx, b, name)
		if err != nil {
			return nil, err
		}
		ticket.End(admit.Done)
		s.lanes = append(s.lanes, lane)
	}
	if direction == "" {
		return s, ctx.Err()
	}
	if ticket.Admit(ctx, b.Destination.Label) != nil {
		return nil, context.Canceled
	}
	told("connection for the transfer")
	s.load, err = OpenLoad(ctx, b, direction)
	return s, err
}

// Names lists the lanes' names.
func (s *Sessions) Names() (names []string) {
	for _, lane := range s.lanes {
		names = append(names, lane.Name)
	}
	return names
}

// Close ends the sessions.
func (s *Sessions) Close() {
	for _, lane := range s.lanes {
		lane.Close()
	}
	if s.load != nil {
		s.load.Close()
	}
}

// Result holds the sent bytes and the echoes.
type Result struct {
	Lanes   []Summary `json:"lanes"`
	Skipped int       `json:"skipped"` // rounds that this machine did not get to
	// LoadBytesPerS is the rate of the transfer; 0: there was none.
	LoadBytesPerS float64 `json:"load_bytes_per_s,omitempty"`
	Echoes        []Echo  `json:"echoes"`
}

// The least time for the last bytes to come back, and the length of idle and loaded phases.
const (
	leastGrace = 2 * time.Second
	loadPhase  = 5 * time.Second
)

// bytes returns how many bytes are sent in each session, one in each interval, as many idle as
// during a transfer; 0 means until the end of the context.
func (s *Sessions) bytes(length sched.Rounds, interval time.Duration) int {
	switch {
	case length.Budget > 0 && s.load != nil:
		return max(1, int(length.Budget/interval)/2)
	case length.Budget > 0:
		return max(1, int(length.Budget/interval))
	}
	return length.Count
}

// Run sends bytes in each session, one an interval: the given number, as many as fit into a budget,
// or until ctx ends where there is neither; and reports each echo. It fails if a session broke or
// nothing came back; there is a result, too.
func (s *Sessions) Run(ctx context.Context, interval time.Duration, length sched.Rounds, each func(Echo)) (*Result, error) {
	r := &Result{Echoes: []Echo{}}
	o := Options{Interval: interval, Count: s.bytes(length, interval), Grace: max(leastGrace, 2*interval), Load: s.load, Phase: loadPhase}
	skipped, err := Run(ctx, s.lanes, o, func(e Echo) {
		r.Echoes = append(r.Echoes, e)
		each(e)
	})
	r.Skipped, r.Lanes = skipped, summarize(s.Names(), r.Echoes)
	if s.load != nil {
		r.LoadBytesPerS = s.load.Rate()
	}
	if err == nil && len(r.Lanes) > 0 && !slices.ContainsFunc(r.Lanes, func(l Summary) bool { return l.Back > 0 }) {
		err = broken(r.Lanes[0].Lane, "no byte came back")
	}
	return r, err
}

// Explain suggests a remedy for a session that failed.
func Explain(b bed.Bed, err error) error {
	failed, ok := errors.AsType[*FailedError](err)
	if !ok {
		return err
	}
	failed.Said = failed.Error()
	return b.Explain(failed.Failed)
}
