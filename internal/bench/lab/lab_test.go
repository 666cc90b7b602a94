package lab_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

var suite = alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha2-256", Kex: "curve25519-sha256"}

// planner hands out its trials in order and notes what happens.
type planner struct {
	plan.Plan
	id       int // of the next trial
	trials   []record.Trial
	elapsed  []time.Duration
	observed []string
}

func (p *planner) Next(elapsed time.Duration, _ record.Slices) (plan.Step, bool) {
	p.elapsed = append(p.elapsed, elapsed)
	if len(p.trials) == 0 {
		return plan.Step{}, false
	}
	t := p.trials[0]
	t.ID = p.id
	p.id++
	p.trials = p.trials[1:]
	return plan.Step{Action: plan.Single, Trials: []record.Trial{t}}, true
}

func (p *planner) Observe(t record.Trial, s record.Sample) {
	p.observed = append(p.observed, fmt.Sprintf("%d:%d:%s", t.ID, s.Trial, s.Outcome))
}

// driver is a lab.Driver that makes single trials by a function.
type driver func(ctx context.Context, t record.Trial) (record.Sample, error)

func (d driver) Run(ctx context.Context, t record.Trial) (record.Sample, error) { return d(ctx, t) }

func (d driver) Open(context.Context, []record.Trial, func(record.Trial, record.Sample) error) error {
	return errors.New("opens nothing")
}

func (d driver) Slice(context.Context, record.Trial, time.Duration) (record.Slice, string, error) {
	return record.Slice{}, "", errors.New("moves nothing")
}

func (d driver) Close(...int) map[int]int { return nil }

// fine negotiates what is wanted and takes a second.
func fine(_ context.Context, t record.Trial) (record.Sample, error) {
	time.Sleep(time.Second)
	got := t.Want
	if t.Offered != (alg.Suite{}) {
		got = t.Offered
	}
	got = alg.NewSuite(got.Cipher, got.MAC, got.Kex)
	got.HostKey = "ssh-ed25519"
	return record.Sample{Got: got, Outcome: record.OK}, nil
}

// trials are n ordinary ones.
func trials(n int) []record.Trial {
	list := make([]record.Trial, n)
	for i := range list {
		list[i] = record.Trial{Want: suite, Workload: record.Sitting, Round: i}
	}
	return list
}

// run runs a plan and lists the records in short.
func run(ctx context.Context, params lab.Params, p plan.Plan, d lab.Driver) (records []string, err error) {
	err = lab.Run(ctx, params, p, d, func(r record.Record) error {
		switch r := r.(type) {
		case *record.Trial:
			records = append(records, fmt.Sprintf("trial %d %s round %d", r.ID, r.Target, r.Round))
		case *record.Sample:
			records = append(records, fmt.Sprintf("sample %d %s", r.Trial, r.Outcome))
		}
		return nil
	})
	return records, err
}

func equal(t *testing.T, what string, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// Every trial is written before it runs, its sample after it; the planner sees both, and the time
// that has passed.
func TestRunCarriesOutThePlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &planner{id: 5, trials: trials(2)}
		records, err := run(t.Context(), lab.Params{Target: "nas", Elapsed: time.Minute, Drain: t.Context()}, p, driver(fine))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "records", []string{"trial 5 nas round 0", "sample 5 ok", "trial 6 nas round 1", "sample 6 ok"}, records)
		equal(t, "observed", []string{"5:5:ok", "6:6:ok"}, p.observed)
		equal(t, "elapsed", []time.Duration{time.Minute, time.Minute + time.Second, time.Minute + 2*time.Second}, p.elapsed)
	})
}

// Draining lets the trial that is running finish, and starts no other.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		p := &planner{id: 1, trials: trials(9)}
		records, err := run(t.Context(), lab.Params{Drain: drain}, p, driver(fine))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "records", []string{"trial 1  round 0", "sample 1 ok", "trial 2  round 1", "sample 2 ok"}, records)
	})
}

func TestDrainedBeforeTheFirstTrial(t *testing.T) {
	drain, cancel := context.WithCancel(t.Context())
	cancel()
	p := &planner{id: 1, trials: trials(1)}
	records, err := run(t.Context(), lab.Params{Drain: drain}, p, driver(fine))
	if err != nil || records != nil || p.elapsed != nil {
		t.Errorf("records %q, %v", records, err)
	}
}

// Without Drain a run can only be cancelled.
func TestDrainMayBeLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		records, err := run(t.Context(), lab.Params{}, &planner{id: 1, trials: trials(1)}, driver(fine))
		if err != nil || len(records) != 2 {
			t.Errorf("records %q, %v", records, err)
		}
	})
}

// Cancelling stops the trial that is running; its sample is kept as what it is.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(1500*time.Millisecond, cancel)
		slow := func(ctx context.Context, _ record.Trial) (record.Sample, error) {
			select {
			case <-ctx.Done():
				return record.Sample{Outcome: record.Aborted}, nil
			case <-time.After(time.Second):
				return record.Sample{Got: suite, Outcome: record.OK}, nil
			}
		}
		p := &planner{id: 1, trials: trials(9)}
		start := time.Now()
		records, err := run(ctx, lab.Params{Drain: ctx}, p, driver(slow))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "records", []string{"trial 1  round 0", "sample 1 ok", "trial 2  round 1", "sample 2 aborted"}, records)
		equal(t, "time", 1500*time.Millisecond, time.Since(start))
	})
}

// A driver's error is a broken lab: the run stops.
func TestBrokenLab(t *testing.T) {
	broken := errors.New("out of pipes")
	p := &planner{id: 1, trials: trials(3)}
	records, err := run(t.Context(), lab.Params{Drain: t.Context()}, p, driver(func(context.Context, record.Trial) (record.Sample, error) {
		return record.Sample{}, broken
	}))
	if !errors.Is(err, broken) || p.observed != nil {
		t.Errorf("%v, observed %q", err, p.observed)
	}
	equal(t, "records", []string{"trial 1  round 0"}, records)
}

// A sink that fails stops the run at once, before a trial and after it: the planner must not learn
// what is not on file.
func TestFullDisk(t *testing.T) {
	full := errors.New("disk full")
	for room, want := range map[int]struct {
		ran, observed int
		says          string
	}{0: {0, 0, "write record: disk full"}, 1: {1, 0, "write record: disk full"}, 2: {1, 1, "write record: disk full"}} {
		synctest.Test(t, func(t *testing.T) {
			p := &planner{id: 1, trials: trials(3)}
			ran := 0
			err := lab.Run(t.Context(), lab.Params{Drain: t.Context()}, p, driver(func(ctx context.Context, trial record.Trial) (record.Sample, error) {
				ran++
				return fine(ctx, trial)
			}), func(record.Record) error {
				if room--; room < 0 {
					return full
				}
				return nil
			})
			if !errors.Is(err, full) || err.Error() != want.says || ran != want.ran || len(p.observed) != want.observed {
				t.Errorf("%v, ran %d, observed %q; want %+v", err, ran, p.observed, want)
			}
		})
	}
}

// What was negotiated decides whether a sample counts.
func TestMismatch(t *testing.T) {
	gcm := alg.Suite{Cipher: "aes128-gcm@openssh.com", Kex: "curve25519-sha256"}
	change := func(s alg.Suite, f func(*alg.Suite)) alg.Suite { f(&s); return s }
	for name, tt := range map[string]struct {
		want, offered, got alg.Suite
		outcome, result    record.Outcome
	}{
		"as wanted":       {suite, alg.Suite{}, suite, record.OK, record.OK},
		"host key":        {suite, alg.Suite{}, change(suite, func(s *alg.Suite) { s.HostKey = "ssh-rsa" }), record.OK, record.OK},
		"cipher":          {suite, alg.Suite{}, change(suite, func(s *alg.Suite) { s.Cipher = "aes256-ctr" }), record.OK, record.Mismatched},
		"MAC":             {suite, alg.Suite{}, change(suite, func(s *alg.Suite) { s.MAC = "umac-64@openssh.com" }), record.OK, record.Mismatched},
		"key exchange":    {suite, alg.Suite{}, change(suite, func(s *alg.Suite) { s.Kex = "ecdh-sha2-nistp256" }), record.OK, record.Mismatched},
		"nothing":         {suite, alg.Suite{}, alg.Suite{}, record.OK, record.Mismatched},
		"AEAD":            {gcm, alg.Suite{}, gcm, record.OK, record.OK},
		"AEAD with a MAC": {gcm, change(gcm, func(s *alg.Suite) { s.MAC = "hmac-sha1" }), gcm, record.OK, record.OK},
		"another name":    {suite, change(suite, func(s *alg.Suite) { s.Kex = "curve25519-sha256@libssh.org" }), change(suite, func(s *alg.Suite) { s.Kex = "curve25519-sha256@libssh.org" }), record.OK, record.OK},
		"not the alias":   {suite, change(suite, func(s *alg.Suite) { s.Kex = "curve25519-sha256@libssh.org" }), suite, record.OK, record.Mismatched},
		"failed anyway":   {suite, alg.Suite{}, alg.Suite{}, record.Denied, record.Denied},
	} {
		var result record.Sample
		p := &planner{id: 1, trials: []record.Trial{{Want: tt.want, Offered: tt.offered}}}
		err := lab.Run(t.Context(), lab.Params{Drain: t.Context()}, p, driver(func(context.Context, record.Trial) (record.Sample, error) {
			return record.Sample{Got: tt.got, Outcome: tt.outcome}, nil
		}), func(r record.Record) error {
			if s, is := r.(*record.Sample); is {
				result = *s
			}
			return nil
		})
		if err != nil || result.Outcome != tt.result {
			t.Errorf("%s: %s %q, %v; want %s", name, result.Outcome, result.Detail, err, tt.result)
		}
		if result.Outcome == record.Mismatched && result.Detail == "" {
			t.Errorf("%s: no detail", name)
		}
	}
}
