package sshtest

import (
	"math/rand/v2"
	"regexp"
)

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
