// Package seedtest gives random tests their seeds, and how many cases they try. It is for tests
// only.
package seedtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Of draws the seed of a simulation, and reports it where the test fails. SSHPACE_SEED repeats one.
func Of(t testing.TB) uint64 {
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
