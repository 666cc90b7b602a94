package report

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/advise"
	"sshpace/internal/record"
)

// jsonAnswer is what all reports of a result say to use.
type jsonAnswer struct {
	Policy  string       `json:"policy"`
	Use     []alg.Suite  `json:"use"`               // the best, and what is tied with it, in the order of preference
	Now     *alg.Suite   `json:"now,omitempty"`     // what is negotiated now; absent if unknown
	Default bool         `json:"default,omitempty"` // now is what OpenSSH does unless configured: the result does not say
	Stays   bool         `json:"stays"`             // now is among use: nothing needs to be changed
	Matters bool         `json:"matters"`           // changing gains something that can be told from noise
	Gains   []jsonGain   `json:"gains"`             // from now to the first of use
	Kex     []jsonChoice `json:"kex,omitempty"`     // what the policy allows, best first
}

type jsonGain struct {
	Direction  record.Direction `json:"direction"`
	Throughput *stats.Interval  `json:"throughput_ratio,omitempty"`
	Cost       *stats.Interval  `json:"cpu_ratio,omitempty"` // above 1: that much less CPU time, of both sides
	Verdict    stats.Verdict    `json:"verdict"`
	Chance     float64          `json:"chance"`
}

type jsonChoice struct {
	Name string `json:"name"`
	Tied bool   `json:"tied"` // with the first
	Now  bool   `json:"now,omitempty"`
}

func answerOf(c *advise.Choice) *jsonAnswer {
	out := &jsonAnswer{Policy: c.Policy.Name, Use: []alg.Suite{}, Default: c.Present.Assumed, Stays: c.Stays(), Matters: c.Matters(), Gains: []jsonGain{}}
	for _, o := range c.Use() {
		out.Use = append(out.Use, o.Suite)
	}
	if c.Present.Suite.Cipher != "" {
		out.Now = &c.Present.Suite
	}
	for _, g := range c.Gains {
		out.Gains = append(out.Gains, jsonGain{g.To.Direction, g.Throughput, g.Cost, g.Verdict, g.Chance})
	}
	for i, k := range c.Logins.Options {
		out.Kex = append(out.Kex, jsonChoice{k.Name, i < c.Logins.Tied, i == c.Logins.Present})
	}
	return out
}
