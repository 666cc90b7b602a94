package sshtest

import (
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"testing"
)

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

// Grammar makes random texts: <name> in a text stands for one of the texts under that name.
// Alternatives that should come more often stand there twice.
type Grammar map[string][]string

var symbol = regexp.MustCompile(`<([a-z0-9]+)>`)

// Make replaces every symbol of text.
func (g Grammar) Make(rng *rand.Rand, text string) string {
	return symbol.ReplaceAllStringFunc(text, func(s string) string {
		choices, known := g[s[1:len(s)-1]]
		if !known {
			panic("no rule for " + s)
		}
		return g.Make(rng, choices[rng.IntN(len(choices))])
	})
}
