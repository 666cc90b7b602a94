package sched

import (
	"testing"
	"testing/synctest"
	"time"
)

// No round that a budget adds would end after it.
func TestRoundsFit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		for range (Rounds{Count: 1, Budget: 10 * time.Second}).Each() {
			n++
			time.Sleep(3 * time.Second)
		}
		if n != 3 {
			t.Errorf("%d rounds of 3 s in 10 s", n)
		}
	})
}

// A budget adds rounds to those that are asked for, and takes none away.
func TestRounds(t *testing.T) {
	count := func(r Rounds, until int) (n int) {
		for range r.Each() {
			if n++; n == until {
				break
			}
		}
		return n
	}
	for _, c := range []struct {
		rounds Rounds
		want   int
		text   string
	}{
		{Rounds{Count: 3}, 3, "3"},
		{Rounds{Count: 3, Budget: 1}, 3, "those of 1ns"},
		{Rounds{Count: 3, Budget: time.Hour}, 50, "those of 1h0m0s"},
		{Rounds{}, 0, "0"},
	} {
		if got := count(c.rounds, 50); got != c.want || c.rounds.String() != c.text {
			t.Errorf("%+v: %d rounds, %q; want %d, %q", c.rounds, got, c.rounds, c.want, c.text)
		}
	}
}
