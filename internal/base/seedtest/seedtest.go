// Package seedtest gives random tests their seeds, and how many cases they try. It is for tests
// only. SSHPACE_SEED=$RANDOM gives them other ones, such as
//
//	SSHPACE_SEED=$RANDOM go test ./internal/bench/...
package seedtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of is the seed of a simulation: a fixed one, unless SSHPACE_SEED says otherwise. The method
// itself is wrong about a part of all runs, and so a few seeds in a hundred exceed the limits of a
// test.
func Of(t testing.TB) uint64 {
	t.Helper()
	_, seed := Cases(t, 1)
	t.Logf("SSHPACE_SEED=%d", seed)
	return seed
}

// Drawn draws the seed of a choice among cases that all must hold, and reports it where the test
// fails. SSHPACE_SEED repeats one.
func Drawn(t testing.TB) uint64 {
	t.Helper()
	seed := number(t, "SSHPACE_SEED", uint64(rand.Uint32()))
	t.Logf("SSHPACE_SEED=%d", seed)
	return seed
}

// Cases is how many random cases a test tries, and the seed of them: few of fixed ones, unless
// SSHPACE_CASES and SSHPACE_SEED say otherwise.
func Cases(t testing.TB, few int) (count int, seed uint64) {
	t.Helper()
	return int(number(t, "SSHPACE_CASES", uint64(few))), number(t, "SSHPACE_SEED", 1)
}

func number(t testing.TB, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
