package document

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/bench/advise"
)

// Choice is the advice of all reports of a result, for programs.
type Choice struct {
	Policy  string        `json:"policy"`
	Use     []alg.Suite   `json:"use"`               // the best, and all that tie with it, in the order of preference
	Now     *alg.Suite    `json:"now,omitempty"`     // the suite that is negotiated now; absent if unknown
	Default bool          `json:"default,omitempty"` // now is the default of OpenSSH: the result does not hold the real one
	Stays   bool          `json:"stays"`             // now is among use: nothing needs to be changed
	Matters bool          `json:"matters"`           // changing gains something significant
	Gains   []advise.Gain `json:"gains"`             // from now to the first of use
	Kex     []choiceKex   `json:"kex,omitempty"`     // allowed by the policy, best first
}

type choiceKex struct {
	Name string `json:"name"`
	Tied bool   `json:"tied"` // with the first
	Now  bool   `json:"now,omitempty"`
}

// ChoiceOf returns a choice for programs.
func ChoiceOf(c *advise.Choice) *Choice {
	out := &Choice{Policy: c.Policy.Name, Use: []alg.Suite{}, Default: c.Present.Assumed, Stays: c.Stays(), Matters: c.Matters(), Gains: append([]advise.Gain{}, c.Gains...)}
	for _, o := range c.Use() {
		out.Use = append(out.Use, o.Suite)
	}
	if c.Present.Suite.Cipher != "" {
		out.Now = &c.Present.Suite
	}
	for i, k := range c.Logins.Options {
		out.Kex = append(out.Kex, choiceKex{k.Name, i < c.Logins.Tied, i == c.Logins.Present})
	}
	return out
}
