package advise

import (
	"cmp"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Options of a choice. The zero value is the default.
type Options struct {
	Policy  Policy     // default: modern
	Present *alg.Suite // suite that is negotiated now, empty for none; default: as the run found, or the client's default
	Shared  alg.Offer  // algorithms that the server accepts, where they are fewer than the measured ones; default: all
}

// Choice is the best option of a ranking under a policy.
type Choice struct {
	Policy  Policy
	Options []rank.Row // all that the policy allows and that have a figure in every direction: best first, ties in the order of preference
	Tied    int        // number of first Options that are equally good; 0: the policy allows nothing
	Present Present
	Verdict stats.Verdict // of a change to the first Option: equal also where no other can be better; "" where the present one is unknown
	Gains   []Gain        // from Present to the first Option, by direction; none where one of them is unknown
	Unseen  int           // suites that the policy allows and that were neither measured nor can be predicted
	// Elsewhere reports whether Verdict is equal because another limit than a cipher was found:
	// figures alone would not show that.
	Elsewhere bool
	Logins    Logins
}

// Of chooses the ciphers and MACs to use from a ranking, and judges what they gain over the present
// ones.
func Of(r *rank.Ranking, o Options) *Choice {
	if o.Policy.Name == "" {
		o.Policy, _ = Named("modern") // it is embedded
	}
	c := &Choice{Policy: o.Policy, Present: presentOf(r, o.Present)}
	for _, row := range r.Rows() {
		if same(row.Suite, c.Present.Suite) {
			c.Present.Cells = row.Cells
		}
		if o.Policy.Allow(r, row.Suite) && o.shares(row.Suite) {
			c.Options = append(c.Options, row)
		}
	}
	for _, s := range r.Missing {
		if o.Policy.Allow(r, s) && o.shares(s) {
			c.Unseen++
		}
	}
	c.Present.Refused = c.Present.Suite.Cipher != "" && !o.Policy.Allow(r, c.Present.Suite)
	c.order(r, o.preference(r, c.Present.Suite))
	c.Present.Option = slices.IndexFunc(c.Options, func(x rank.Row) bool { return same(x.Suite, c.Present.Suite) })
	c.judge(r)
	c.Logins = loginsOf(r, o.Policy, c.Present.Suite.Kex)
	return c
}

// shares reports whether the server accepts a suite.
func (o Options) shares(s alg.Suite) bool {
	return len(o.Shared.Ciphers) == 0 || slices.Contains(o.Shared.Ciphers, s.Cipher) && (s.MAC == "" || slices.Contains(o.Shared.MACs, s.MAC))
}

func same(a, b alg.Suite) bool { return a.Computation() == b.Computation() }

// score returns the mean logarithm of an option's cost: less is better.
func score(r *rank.Ranking, o rank.Row) float64 {
	sum := 0.0
	for _, cell := range o.Cells {
		sum += r.Deciding(cell).Log
	}
	if r.By != rank.Cost {
		sum = -sum
	}
	return sum / float64(len(o.Cells))
}

// gains compares an option with the present one, in every direction; none where that is unknown.
func (c *Choice) gains(r *rank.Ranking, to rank.Row) (out []Gain) {
	for i, from := range c.Present.Cells {
		out = append(out, gainOf(r, from, to.Cells[i]))
	}
	return out
}

// equal reports whether two options make no difference in any direction.
func equal(r *rank.Ranking, o, other rank.Row) bool {
	for i, cell := range o.Cells {
		if !same(o.Suite, other.Suite) && gainOf(r, cell, other.Cells[i]).Verdict != stats.Equal {
			return false
		}
	}
	return true
}

// verdictOf combines the verdicts of all directions.
func verdictOf(gains []Gain) stats.Verdict {
	count := map[stats.Verdict]int{}
	for _, g := range gains {
		count[g.Verdict]++
	}
	switch {
	case len(gains) == 0:
		return ""
	case count[stats.Better] > 0 && count[stats.Worse] == 0:
		return stats.Better
	case count[stats.Equal] == len(gains):
		return stats.Equal
	case count[stats.Worse] > 0 && count[stats.NotEnough] == 0:
		return stats.Worse
	}
	return stats.NotEnough
}

// order puts the best option first, then those that are as good, by preference, and then all
// others. An option that is certainly better precedes one that only seems to be.
func (c *Choice) order(r *rank.Ranking, preference func(alg.Suite) int) {
	slices.SortStableFunc(c.Options, func(a, b rank.Row) int { return cmp.Compare(score(r, a), score(r, b)) })
	front(c.Options, func(o rank.Row) bool { return verdictOf(c.gains(r, o)) == stats.Better })
	if len(c.Options) > 0 {
		best := c.Options[0]
		c.Tied = front(c.Options, func(o rank.Row) bool { return equal(r, best, o) })
	}
	slices.SortStableFunc(c.Options[:c.Tied], func(a, b rank.Row) int { return cmp.Compare(preference(a.Suite), preference(b.Suite)) })
}

// front moves the chosen elements to the front, without another change of the order, and returns
// their number.
func front[T any](all []T, chosen func(T) bool) int {
	var first, rest []T
	for _, x := range all {
		if chosen(x) {
			first = append(first, x)
		} else {
			rest = append(rest, x)
		}
	}
	copy(all[copy(all, first):], rest)
	return len(first)
}

// preference numbers suites for the order of ties: the present one needs no change, so it comes
// first unless the policy has its own order.
func (o Options) preference(r *rank.Ranking, present alg.Suite) func(alg.Suite) int {
	lists := []alg.Offer{r.Campaign.Offer}
	if o.Policy.Ordered {
		lists = []alg.Offer{{Ciphers: o.Policy.Ciphers, MACs: o.Policy.MACs}, r.Campaign.Offer}
	}
	return func(s alg.Suite) int {
		if same(s, present) && !o.Policy.Ordered {
			return -1
		}
		return place(alg.Cipher, s.Cipher, lists)<<16 + place(alg.MAC, s.MAC, lists)
	}
}

// place returns the first place of a name in the lists, one after the other.
func place(kind alg.Kind, name string, lists []alg.Offer) int {
	before := 0
	for _, list := range lists {
		names := list.List(kind)
		if i := slices.Index(names, name); i >= 0 {
			return before + i
		}
		before += len(names)
	}
	return before
}

// judge sets the verdict on a change from the present to the best option. Keeping the present one
// is advised only where no option can be better by more than the margin.
func (c *Choice) judge(r *rank.Ranking) {
	if c.Tied == 0 {
		return
	}
	c.Gains = c.gains(r, c.Options[0])
	c.amongOthers(r)
	c.Verdict = verdictOf(c.Gains)
	switch {
	case c.Verdict == stats.NotEnough && limitedElsewhere(r) && !c.Limited(r):
		c.Verdict, c.Elsewhere = stats.Equal, true
		return
	case c.Verdict != stats.Equal:
		return
	case c.Unseen > 0 && c.Limited(r): // otherwise no other cipher can help, either
		c.Verdict = stats.NotEnough
	}
	for _, o := range c.Options {
		for _, g := range c.gains(r, o) {
			if q := g.Decides(r.By); q == nil || !q.Gainless() {
				c.Verdict = stats.NotEnough
			}
		}
	}
}

// amongOthers judges the gain of the first option as the best of many: one of those looks better
// than the present one by chance alone (Holm's correction).
func (c *Choice) amongOthers(r *rank.Ranking) {
	if c.Present.Option == 0 {
		return // nothing is gained by keeping it
	}
	for i, ratios := range c.ratios(r) {
		c.Gains[i].Verdict = stats.Judge(ratios)[0].Verdict
	}
}

// ratios returns the ratios of all options to the present one, by direction, those of the first
// option first.
func (c *Choice) ratios(r *rank.Ranking) [][]stats.Estimate {
	out := make([][]stats.Estimate, len(c.Gains))
	for k, o := range c.Options {
		for i, g := range c.gains(r, o) {
			if k == 0 || g.ratio.Err > 0 {
				out[i] = append(out[i], g.ratio)
			}
		}
	}
	return out
}

// differs reports whether any option certainly has another speed than the present one.
func (c *Choice) differs(r *rank.Ranking) bool {
	return slices.ContainsFunc(c.ratios(r), func(ratios []stats.Estimate) bool {
		return slices.ContainsFunc(stats.Judge(ratios), func(j stats.Judged) bool { return j.Verdict.Differs() })
	})
}

// Use returns the best options, which tie.
func (c *Choice) Use() []rank.Row { return c.Options[:c.Tied] }

// Stays reports whether nothing needs to be changed.
func (c *Choice) Stays() bool { return c.Present.Option >= 0 && c.Verdict == stats.Equal }

// Matters reports whether a change certainly gains something.
func (c *Choice) Matters() bool { return c.Verdict == stats.Better }

// Compares reports whether the result allows a verdict on a change: the present suite was measured,
// too, or the policy refuses it.
func (c *Choice) Compares() bool { return len(c.Gains) > 0 || c.Present.Refused }

// Uncertain reports whether the present suite is allowed, and the result does not show whether a
// change gains anything.
func (c *Choice) Uncertain() bool {
	return c.Present.Option >= 0 && !c.Stays() && !c.Matters()
}

// busyCPU is the share of a core from which on a side's CPU may be the limit.
const busyCPU = 0.6

// First returns the names of a kind that a configuration should put first: those of the best
// options. There are none where nothing of that kind needs to be changed.
func (c *Choice) First(kind alg.Kind) []string {
	if kind == alg.Kex {
		return c.Logins.first()
	}
	if c.Stays() || c.Uncertain() || !c.Compares() {
		return nil
	}
	var names []string
	for _, o := range c.Use() {
		if name := o.Suite.Name(kind); name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if kind == alg.MAC && (c.Tied == 0 || alg.IsAEAD(c.Options[0].Suite.Cipher)) {
		return nil // the best cipher needs none
	}
	return names
}

// Limited reports whether a CPU may limit the present suite: a side keeps one busy or may have
// waited for one, or another cipher certainly has another speed. If not, the link, the window or a
// disk is the limit, and no cipher changes that. On loopback only other work on the machine could
// be.
func (c *Choice) Limited(r *rank.Ranking) bool {
	waited := func(l record.Limit) bool { return l.Evidence.Crowded() }
	switch {
	case r.Campaign.Server != record.ServerRemote, c.differs(r):
		return true
	case limitedElsewhere(r):
		return false
	}
	return !slices.ContainsFunc(c.Gains, idle) || slices.ContainsFunc(r.Limits, waited)
}

// limitedElsewhere reports whether a limit that no cipher changes was found in all directions.
func limitedElsewhere(r *rank.Ranking) bool {
	elsewhere := []string{record.LimitWindow, record.LimitLink, record.LimitLosses}
	return len(r.Limits) > 0 && !slices.ContainsFunc(r.Limits, func(l record.Limit) bool { return !slices.Contains(elsewhere, l.What) })
}

// idle reports whether the present suite keeps neither side's CPU busy.
func idle(g Gain) bool {
	from := g.From
	if !from.Throughput.Known() || !from.Client.Known() {
		return false
	}
	share := func(side rank.Figure) float64 {
		if !side.Known() {
			return 1 // not known: it may be the limit
		}
		return from.Throughput.Value() * side.Value() / 1e9
	}
	return share(from.Client) < busyCPU && share(from.Server) < busyCPU
}

// Only reports whether the policy allows nothing but the present suite among those that both sides
// have.
func (c *Choice) Only() bool { return len(c.Options) == 1 && c.Present.Option == 0 && c.Unseen == 0 }
