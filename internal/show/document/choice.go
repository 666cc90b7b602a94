package document

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
	"sshpace/internal/record"
)

// Choice is what all reports of a result say to use, for programs.
type Choice struct {
	Policy  string       `json:"policy"`
	Use     []alg.Suite  `json:"use"`               // the best, and what is tied with it, in the order of preference
	Now     *alg.Suite   `json:"now,omitempty"`     // what is negotiated now; absent if unknown
	Default bool         `json:"default,omitempty"` // now is what OpenSSH does unless configured: the result does not say
	Stays   bool         `json:"stays"`             // now is among use: nothing needs to be changed
	Matters bool         `json:"matters"`           // changing gains something significant
	Gains   []choiceGain `json:"gains"`             // from now to the first of use
	Kex     []choiceKex  `json:"kex,omitempty"`     // what the policy allows, best first
}

type choiceGain struct {
	Direction record.Direction `json:"direction"`
	advise.Gain
}

type choiceKex struct {
	Name string `json:"name"`
	Tied bool   `json:"tied"` // with the first
	Now  bool   `json:"now,omitempty"`
}

// ChoiceOf is a choice for programs.
func ChoiceOf(c *advise.Choice) *Choice {
	out := &Choice{Policy: c.Policy.Name, Use: []alg.Suite{}, Default: c.Present.Assumed, Stays: c.Stays(), Matters: c.Matters(), Gains: []choiceGain{}}
	for _, o := range c.Use() {
		out.Use = append(out.Use, o.Suite)
	}
	if c.Present.Suite.Cipher != "" {
		out.Now = &c.Present.Suite
	}
	for _, g := range c.Gains {
		out.Gains = append(out.Gains, choiceGain{g.To.Direction, g})
	}
	for i, k := range c.Logins.Options {
		out.Kex = append(out.Kex, choiceKex{k.Name, i < c.Logins.Tied, i == c.Logins.Present})
	}
	return out
}
