package handshake

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"sshpace/internal/ssh/sshtest"
)

// pair is an ssh and an sshd for cases.
func pair(t *testing.T) (*Ends, Case) {
	s := sshtest.StartSshd(t)
	e := &Ends{Connect: 5 * time.Second, Dir: t.TempDir()}
	return e, Case{Level: "plain", Argv: sshTo(t, s.User, s.Key, s.Port)}
}

// TestSumOfPhases: the means of the phases make the mean login, within 3 %.
func TestSumOfPhases(t *testing.T) {
	e, plain := pair(t)
	results, err := e.Survey(context.Background(), []Case{plain}, Plan{Rounds: 3})
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

// TestFailedCase: a case that fails is not tried again, and the others go on; a
// strict plan stops.
func TestFailedCase(t *testing.T) {
	e, plain := pair(t)
	tries := 0
	refused := Case{Factor: "key", Level: "wrong", Argv: func(log string) []string {
		tries++
		return slices.Insert(plain.Argv(log), 1, "-o", "PreferredAuthentications=password")
	}}
	results, err := e.Survey(context.Background(), []Case{plain, refused}, Plan{Rounds: 3})
	if err != nil || results[0].Wall.N != 3 || results[1].Failure == "" || results[1].Wall.N != 0 || tries != 1 {
		t.Errorf("%+v, %d tries, %v", results, tries, err)
	}
	tries = 0
	var failed *FailedError
	if _, err := e.Survey(context.Background(), []Case{plain, refused}, Plan{Rounds: 3, Strict: true}); !errors.As(err, &failed) || tries != 1 {
		t.Errorf("%d tries of a host that refuses, %v", tries, err)
	}
}

// TestBudget: there are two rounds at least, and no further ones that would not fit.
func TestBudget(t *testing.T) {
	e, plain := pair(t)
	results, err := e.Survey(context.Background(), []Case{plain}, Plan{Budget: time.Nanosecond})
	if err != nil || results[0].Wall.N != 2 {
		t.Errorf("%+v, %v", results, err)
	}
}

// TestFirsts: of options that count once, the first stays.
func TestFirsts(t *testing.T) {
	got := firsts([]string{"-p", "1", "-4", "-F", "a", "-p", "2", "-o", "x=1", "-o", "y=2", "-i", "k", "-F", "b"})
	if want := []string{"-p", "1", "-4", "-F", "a", "-o", "x=1", "-o", "y=2", "-i", "k"}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
