package sched

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// counted runs a loop of two turns a round, each of which takes so long, and says what it made.
func counted(t *testing.T, l Loop[int], turn time.Duration) (rounds int, took time.Duration) {
	began := time.Now()
	l.Due = func(round int) []int {
		if rounds = round + 1; rounds > 50 {
			return nil
		}
		return []int{1, 2}
	}
	l.Take = func(int, int) error { time.Sleep(turn); return nil }
	if err := l.Run(t.Context()); err != nil {
		t.Error(err)
	}
	return rounds, time.Since(began)
}

// A budget adds rounds to those that are asked for, takes none away, and none that it adds would
// end after it; what was made before counts.
func TestLoopEnds(t *testing.T) {
	const turn = 1500 * time.Millisecond
	for _, c := range []struct {
		loop   Loop[int]
		rounds int
		text   string
	}{
		{Loop[int]{Rounds: Rounds{Count: 3}}, 3, "round 1 of 3"},
		{Loop[int]{Rounds: Rounds{Count: 3, Budget: 1}}, 3, "round 1 (1ns in all)"},
		{Loop[int]{Rounds: Rounds{Count: 1, Budget: 10 * time.Second}}, 3, "round 1 (10s in all)"},
		{Loop[int]{Rounds: Rounds{Count: 1, Budget: 10 * time.Second}, Made: 1, Spent: 3 * time.Second}, 3, "round 1 (10s in all)"},
		{Loop[int]{Rounds: Rounds{Count: 1, Budget: 10 * time.Second}, Made: 2, Spent: 11 * time.Second}, 0, "round 1 (10s in all)"},
		{Loop[int]{Rounds: Rounds{Count: 3}, Made: 2}, 3, "round 1 of 3"},
		{Loop[int]{Rounds: Rounds{Budget: time.Hour}}, 51, "round 1 (1h0m0s in all)"},
		{Loop[int]{}, 0, "round 1 of 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			rounds, took := counted(t, c.loop, turn)
			if rounds != c.rounds || c.loop.Rounds.Progress(1) != c.text {
				t.Errorf("%+v: %d rounds in %v, want %d; %q, want %q", c.loop.Rounds, rounds, took, c.rounds, c.loop.Rounds.Progress(1), c.text)
			}
		})
	}
}

// Every round has all that is due, in an order of its own, and the same one for the same seed.
func TestLoopOrder(t *testing.T) {
	all := []int{1, 2, 3, 4, 5, 6, 7, 8}
	measure := func(seed uint64, made int) (taken [][]int) {
		err := Loop[int]{Rounds: Rounds{Count: 3}, Seed: seed, Made: made, Due: func(int) []int { taken = append(taken, nil); return all },
			Take: func(_, turn int) error { taken[len(taken)-1] = append(taken[len(taken)-1], turn); return nil }}.Run(t.Context())
		if err != nil {
			t.Error(err)
		}
		return taken
	}
	one := measure(1, 0)
	for _, round := range one {
		if sorted := slices.Sorted(slices.Values(round)); !slices.Equal(sorted, all) {
			t.Errorf("took %v", round)
		}
	}
	if slices.Equal(one[0], one[1]) || slices.Equal(one[0], measure(2, 0)[0]) {
		t.Errorf("orders %v, and with another seed %v", one, measure(2, 0))
	}
	if again := measure(1, 1); !slices.EqualFunc(again, one[1:], slices.Equal) {
		t.Errorf("gone on with: %v, want %v", again, one[1:])
	}
}

// No turn begins once drain has ended; an error ends it, and so does what follows a round.
func TestLoopStops(t *testing.T) {
	drain, end := context.WithCancel(t.Context())
	broken, turns := errors.New("broken"), 0
	l := Loop[int]{Rounds: Rounds{Count: 9}, Due: func(int) []int { return []int{1, 2} }, Take: func(round, _ int) error {
		if turns++; round == 1 {
			end()
		}
		return nil
	}}
	if err := l.Run(drain); err != nil || turns != 3 {
		t.Errorf("%d turns, %v", turns, err)
	}
	l.Take = func(int, int) error { return broken }
	if err := l.Run(t.Context()); err != broken {
		t.Error(err)
	}
	l.Take, l.After = func(int, int) error { return nil }, func(took, left time.Duration) error { return broken }
	if err := l.Run(t.Context()); err != broken {
		t.Error(err)
	}
}

// TestLeft: the first round goes by what one usually takes, the others by those before.
func TestLeft(t *testing.T) {
	ten := Rounds{Count: 10}
	for want, got := range map[string]string{
		"round 1 of 10, about 3 min left": ten.Left(1, 0, 16*time.Second),
		"round 6 of 10, about 50 s left":  ten.Left(6, 50*time.Second, time.Hour),
		"round 10 of 10, about 10 s left": ten.Left(10, 90*time.Second, time.Hour),
		"round 2 (30s in all)":            Rounds{Count: 2, Budget: 30 * time.Second}.Left(2, time.Second, 0),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
