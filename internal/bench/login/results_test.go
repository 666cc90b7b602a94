package login

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/bench/testbed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/safedir"
)

// pair is an ssh and an sshd for cases.
func pair(t *testing.T) (*Ends, Case) {
	s := sshtest.StartSshd(t)
	e := &Ends{Bed: bed.Bed{Connect: time.Minute}, Dir: t.TempDir()}
	return e, Case{Level: "plain", Argv: sshTo(t, s.User, s.Key, s.Port)}
}

// surveyed is what a survey records, and what its records say.
func surveyed(e *Ends, cases []Case, p Plan) ([]Result, *record.File, error) {
	file := &record.File{}
	p.Note = file.Sink()
	err := e.Survey(context.Background(), cases, p)
	results, _ := Results(file)
	return results, file, err
}

// TestSumOfPhases: the means of the phases make the mean login, within 3 %.
func TestSumOfPhases(t *testing.T) {
	e, plain := pair(t)
	results, _, err := surveyed(e, []Case{plain}, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, mean := range results[0].Mean {
		sum += mean
	}
	if r := results[0]; math.Abs(sum-r.MeanWall) > 0.03*r.MeanWall || r.Wall.N != 3 {
		t.Errorf("phases of %v ns in %d logins of %v ns", sum, r.Wall.N, r.MeanWall)
	}
}

// TestFailedCase: a case that fails is not tried again, and the others go on; a strict plan stops.
func TestFailedCase(t *testing.T) {
	e, plain := pair(t)
	tries := 0
	refused := Case{Factor: "key", Level: "wrong", Argv: func(log string) []string {
		return slices.Insert(plain.Argv(log), 1, "-o", "PreferredAuthentications=password")
	}, After: func(context.Context, *record.Reading) { tries++ }}
	results, _, err := surveyed(e, []Case{plain, refused}, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 3}}})
	if err != nil || results[0].Wall.N != 3 || results[1].Failure == "" || results[1].Wall.N != 0 || tries != 1 {
		t.Errorf("%+v, %d tries, %v", results, tries, err)
	}
	tries = 0
	var failed *FailedError
	if _, _, err := surveyed(e, []Case{plain, refused}, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 3}}, Strict: true}); !errors.As(err, &failed) || tries != 1 {
		t.Errorf("%d tries of a host that refuses, %v", tries, err)
	}
}

// TestAlike: cases of one command line are one login, whose figures, or whose failure, they share;
// the records say so.
func TestAlike(t *testing.T) {
	e, plain := pair(t)
	tries := 0
	plain.After = func(context.Context, *record.Reading) { tries++ }
	again := Case{Factor: ConnectionFactor, Level: "cold login", Argv: plain.Argv, After: plain.After}
	refused := Case{Factor: "key", Level: "wrong", Argv: func(log string) []string {
		return slices.Insert(plain.Argv(log), 1, "-o", "PreferredAuthentications=password")
	}}
	cases := []Case{plain, again, refused, refused}
	results, file, err := surveyed(e, cases, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 2}}})
	if err != nil || tries != 2 || Distinct(cases) != 2 {
		t.Fatalf("%d logins of %d kinds, %v", tries, Distinct(cases), err)
	}
	if results[1].Wall.N != 2 || results[1].Wall != results[0].Wall || results[1].ClientCPU != results[0].ClientCPU || results[1].Level != "cold login" {
		t.Errorf("%+v and %+v", results[0], results[1])
	}
	if results[2].Failure == "" || results[3].Failure != results[2].Failure {
		t.Errorf("failures %q and %q", results[2].Failure, results[3].Failure)
	}
	if k := file.Subjects; k[0].Like != 0 || k[1].Like != 1 || k[2].Like != 0 || k[3].Like != 3 {
		t.Errorf("%+v", k)
	}
	if _, listed, err := surveyed(e, cases, Plan{Plan: rounds.Plan{List: true}}); err != nil || len(listed.Readings) > 0 || !cmp.Equal(listed.Subjects, file.Subjects) {
		t.Errorf("listed %+v, %v", listed, err)
	}
}

// TestResume: what failed earlier is left out, and the time of the logins until then is spent;
// other subjects of a file count for neither.
func TestResume(t *testing.T) {
	core := 1
	s := &survey{all: []*rounds.Subject{{Runs: make([]rounds.Run, 1)}, {Runs: make([]rounds.Run, 1)}}, plan: Plan{Lanes: make([]Lane, 2), Plan: rounds.Plan{Old: &record.File{
		Subjects: []record.Subject{{ID: 1, Method: &record.Method{}}, {ID: 2, LoginKind: &record.LoginKind{}}, {ID: 3, LoginKind: &record.LoginKind{}}},
		Readings: []record.Reading{{Subject: 1, WallNS: 1000}, {Subject: 1, Failure: "cut"}, {Subject: 2, WallNS: 100}, {Subject: 2, WallNS: 10, Core: &core}, {Subject: 3, Failure: "cut"}},
	}}}}
	if spent := s.resume(); spent != 105 || len(s.all[0].Runs) != 1 || len(s.all[1].Runs) != 0 {
		t.Errorf("spent %d, runs %d and %d", spent, len(s.all[0].Runs), len(s.all[1].Runs))
	}
}

// TestAlikeKex: names of one key exchange are one login, unless only one of them is wanted.
func TestAlikeKex(t *testing.T) {
	e := &Ends{Native: "sshpace"}
	if n := Distinct(e.KexCases([]string{"curve25519-sha256@libssh.org", "curve25519-sha256", "ecdh-sha2-nistp256"})); n != 2 {
		t.Errorf("%d logins of 2 key exchanges by 3 names", n)
	}
	if argv := e.KexCases([]string{"curve25519-sha256@libssh.org"})[0].Argv(""); !slices.Contains(argv, "KexAlgorithms=curve25519-sha256@libssh.org") {
		t.Errorf("%q", argv)
	}
	tb := &testbed.Testbed{}
	tb.Dir = &safedir.Workdir{}
	f := &Study{Bed: tb, ends: e, everyKey: e, host: []*keyPair{{name: "ssh-ed25519"}}, user: []*keyPair{{name: "ssh-ed25519"}}}
	if n := Distinct(f.full([]string{"curve25519-sha256@libssh.org", "curve25519-sha256", "ecdh-sha2-nistp256"})); n != 2 {
		t.Errorf("%d logins of 2 key exchanges by 3 names with each key", n)
	}
}

// TestBudget: there are two rounds at least, and no further ones that would not fit.
func TestBudget(t *testing.T) {
	e, plain := pair(t)
	results, _, err := surveyed(e, []Case{plain}, Plan{Plan: rounds.Plan{Rounds: sched.Rounds{Budget: time.Nanosecond}}})
	if err != nil || results[0].Wall.N != 2 {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestWallIntervals: the truth is where 95 % of runs find it, with three logins of each of forty
// kinds, as a minute allows, that vary alike or not, and of the few kinds of a host; the range of
// three holds it in three of four runs.
func TestWallIntervals(t *testing.T) {
	const truth, runs, each = 50e6, 200, 3
	seed := seedtest.Of(t)
	for what, deviations := range map[string][]float64{
		"alike": slices.Repeat([]float64{0.15}, 40), "unlike": slices.Repeat([]float64{0.02, 0.1, 0.2, 0.3}, 10),
		"few": {0.03, 0.2, 0.3}, "one": {0.1}, "two": {0.3, 0.3},
	} {
		random := rand.New(rand.NewPCG(seed, 2))
		var held, ranged, all float64
		for range runs {
			groups := make([][]time.Duration, len(deviations))
			for i, deviation := range deviations {
				for range each {
					groups[i] = append(groups[i], time.Duration(truth*math.Exp(deviation*random.NormFloat64())))
				}
			}
			for i, f := range figures(groups) {
				all++
				if f.Lo <= truth && truth <= f.Hi {
					held++
				}
				if slices.Min(groups[i]) <= truth && truth <= slices.Max(groups[i]) {
					ranged++
				}
			}
		}
		if held/all < 0.93 || held/all > 0.985 || ranged/all > 0.82 {
			t.Errorf("%s: %.1f %% of intervals hold the truth, %.1f %% of ranges", what, 100*held/all, 100*ranged/all)
		}
	}
	if f := figures([][]time.Duration{{400e6, 900e6, 1700e6}})[0]; f.Lo <= 0 || f.Hi < 1700e6 {
		t.Errorf("of three unlike logins: %+v", f)
	}
	if f := figures([][]time.Duration{{100e6, 150e6}})[0]; f.Hi > 3*f.Value {
		t.Errorf("of two logins: %+v", f)
	}
	if f := figures([][]time.Duration{nil, {time.Second}}); f[0].N != 0 || f[1].N != 1 || math.Abs(f[1].Value-1e9) > 1 || f[1].Lo != f[1].Hi {
		t.Errorf("of no login and of one: %+v", f)
	}
}

// TestTypical: a login whose stamps have missed a stall is not shown for those that had it.
func TestTypical(t *testing.T) {
	with := func(ms time.Duration, stalls int) *record.Reading {
		return &record.Reading{WallNS: ms * time.Millisecond, UpBytes: int64(ms), Stalls: make([]record.LoginStall, stalls)}
	}
	all := []*record.Reading{with(209, 0), with(204, 2), with(214, 2), {}}
	if w := typical(all, 209e6); w == nil || len(w.Stalls) != 2 {
		t.Errorf("got %+v", w)
	}
	if w := typical(all[3:], 0); w != nil {
		t.Errorf("got %+v", w)
	}
}
