// Package advise derives a configuration from a ranking, a security policy and the present
// configuration: the fastest that the policy allows, with a reason for every choice. It never
// advises anything weak, broken, unknown, or open to Terrapin, however fast that is. It does no
// I/O.
package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
)

// Params of New.
type Params struct {
	Ranking *rank.Ranking
	Policy  Policy
	Client  Side
	Server  Side
	Strict  bool // the lines disable everything else, instead of putting the advised names first
}

// Side is the configuration of one program.
type Side struct {
	Offer   alg.Offer // its present offer, in its order (ssh -G, sshd -T); empty if unknown
	Default alg.Offer // its offer without any configuration; empty if unknown
	Old     bool      // it does not know lists that begin with ^ (before OpenSSH 8.1)
}

// Advice is the result of New.
type Advice struct {
	Policy  string
	Lists   []List
	Present alg.Suite // suite that is negotiated now; empty if unknown, or Severed
	Advised alg.Suite // suite after the change
	Severed alg.Kind  // present client and server share no algorithm of this kind: they cannot connect
	Choice  *Choice   // the choice in all reports of this ranking
	Notes   []string  // warnings about the advice
	Ranking *rank.Ranking
	Strict  bool

	client, server Side
}

// List is one line of the configuration.
type List struct {
	Kind    alg.Kind
	Choices []Listed // all that the policy allows, best first
	First   []string // names for the configuration: if strict all Choices, otherwise the best and all that tie with it; none where nothing needs to be changed
	Dropped []Listed // offered now, but not advised
	keep    string   // why nothing needs to be put first
}

// Listed is one name with its reason.
type Listed struct {
	Name   string `json:"name"`
	Group  string `json:"group,omitempty"` // of equally fast ones; "" where it was not measured
	Reason string `json:"reason"`
	figure string
	place  int // among the measured ones, best first
}

// Names returns the names of a list.
func (l List) Names() []string {
	var names []string
	for _, c := range l.Choices {
		names = append(names, c.Name)
	}
	return names
}

// ErrNothing says that the policy allows nothing that both sides have.
var ErrNothing = errors.New("the policy allows nothing that was measured")

// unmeasured is the place of names without a measurement: after everything else.
const unmeasured = 1 << 20

// New makes the advice. Its error is ErrNothing, with the name of the empty list.
func New(p Params) (*Advice, error) {
	a := &Advice{Policy: p.Policy.Name, Ranking: p.Ranking, Strict: p.Strict, client: p.Client, server: p.Server}
	shared := p.shared()
	for _, kind := range alg.Measured {
		list := List{Kind: kind}
		for _, name := range p.candidates(kind) {
			if why := p.Policy.Refuses(kind, name, p.Ranking.Environment.StrictKex); why != "" {
				if slices.Contains(p.Client.Offer.List(kind), name) || slices.Contains(p.Server.Offer.List(kind), name) {
					list.Dropped = append(list.Dropped, Listed{Name: name, Reason: why})
				}
				continue
			}
			list.Choices = append(list.Choices, Listed{Name: name})
		}
		a.Lists = append(a.Lists, list)
	}
	a.dropMACless(shared)
	a.present(p, shared)
	a.Choice = Of(p.Ranking, Options{Policy: p.Policy, Present: &a.Present, Shared: shared})
	a.order(p)
	a.first()
	for _, list := range a.Lists {
		needed := list.Kind != alg.MAC || slices.ContainsFunc(a.Lists[0].Choices, func(c Listed) bool { return !alg.IsAEAD(c.Name) })
		if needed && !slices.ContainsFunc(list.Choices, func(c Listed) bool { return slices.Contains(shared.List(list.Kind), c.Name) }) {
			return nil, fmt.Errorf("%w: no %s of policy %s is shared by client and server", ErrNothing, list.Kind, a.Policy)
		}
	}
	a.Advised = a.offer().Negotiate(shared)
	if len(a.Lists[2].First) == 0 && a.Present.Kex != "" {
		a.Advised.Kex = a.Present.Kex
	}
	a.doubt(p)
	return a, nil
}

// dropMACless drops ciphers that need a MAC if no MAC can be advised.
func (a *Advice) dropMACless(shared alg.Offer) {
	ciphers, macs := &a.Lists[0], a.Lists[1]
	if slices.ContainsFunc(macs.Choices, func(c Listed) bool { return slices.Contains(shared.MACs, c.Name) }) {
		return
	}
	var kept []Listed
	for _, c := range ciphers.Choices {
		if alg.IsAEAD(c.Name) {
			kept = append(kept, c)
		} else {
			ciphers.Dropped = append(ciphers.Dropped, Listed{Name: c.Name, Reason: "it needs a MAC, and no MAC of the policy is shared"})
		}
	}
	ciphers.Choices = kept
}

// present sets the suite that client and server negotiate now.
func (a *Advice) present(p Params, shared alg.Offer) {
	a.Present = p.Client.Offer.Negotiate(shared)
	if a.Severed = p.severed(a.Present); a.Severed != "" {
		a.Present = alg.Suite{}
	}
}

// shared returns the part of the run's offer that the server accepts.
func (p Params) shared() alg.Offer {
	if len(p.Server.Offer.Ciphers) > 0 {
		return p.Server.Offer
	}
	if shared := p.Ranking.Campaign.Shared; len(shared.Ciphers) > 0 {
		return shared
	}
	return p.Ranking.Campaign.Offer
}

// severed returns the kind of algorithm that client and server do not share, so that they cannot
// connect; "" if there is none, or the server's offer is unknown.
func (p Params) severed(present alg.Suite) alg.Kind {
	known := len(p.Server.Offer.Ciphers) > 0 || len(p.Ranking.Campaign.Shared.Ciphers) > 0
	switch {
	case !known || len(p.Client.Offer.Ciphers) == 0:
		return ""
	case present.Cipher == "":
		return alg.Cipher
	case present.MAC == "" && !alg.IsAEAD(present.Cipher):
		return alg.MAC
	case present.Kex == "":
		return alg.Kex
	}
	return ""
}

// CannotConnect describes a present configuration that does not work; "" if it does, or that is
// unknown.
func (a *Advice) CannotConnect() string {
	what := map[alg.Kind]string{alg.Cipher: "cipher", alg.MAC: "MAC", alg.Kex: "key exchange"}[a.Severed]
	if what == "" {
		return ""
	}
	return "the present configuration shares no " + what + " with this server: it cannot connect"
}

// candidates returns all names of a kind that could be advised, in the order that decides between
// equals: the policy's where it has one, otherwise the client's.
func (p Params) candidates(kind alg.Kind) []string {
	var names []string
	add := func(list []string) {
		for _, name := range list {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	measured := p.Ranking.Campaign.Offer.List(kind)
	present := p.Client.Offer.List(kind)
	if p.Policy.Ordered {
		for _, name := range map[alg.Kind][]string{alg.Cipher: p.Policy.Ciphers, alg.MAC: p.Policy.MACs, alg.Kex: p.Policy.Kex}[kind] {
			if slices.Contains(measured, name) || slices.Contains(present, name) {
				add([]string{name})
			}
		}
	}
	add(present)
	add(measured)
	return names
}

// offer returns the advice as lists.
func (a *Advice) offer() alg.Offer {
	return alg.Offer{Ciphers: a.Lists[0].Names(), MACs: a.Lists[1].Names(), Kex: a.Lists[2].Names()}
}

// order sorts each list like the choice; names without a measurement follow in their old order.
func (a *Advice) order(p Params) {
	options := a.Choice.Options
	leader := slices.IndexFunc(options, func(o rank.Row) bool { return !alg.IsAEAD(o.Suite.Cipher) })
	for _, list := range a.Lists {
		for i := range list.Choices {
			c := &list.Choices[i]
			if list.Kind == alg.Kex {
				c.fillKex(a.Choice.Logins.Options, p.Policy.Classical)
				continue
			}
			c.fill(list.Kind, options, func(s alg.Suite) bool {
				return sameName(list.Kind, s.Name(list.Kind), c.Name) && (list.Kind == alg.Cipher || leader >= 0 && s.Cipher == options[leader].Suite.Cipher)
			})
		}
		slices.SortStableFunc(list.Choices, func(a, b Listed) int { return cmp.Compare(a.place, b.place) })
	}
}

// first copies the names to put first from the choice, as all reports do; and the allowed names,
// where client and server share nothing otherwise.
func (a *Advice) first() {
	c := a.Choice
	for i := range a.Lists {
		list := &a.Lists[i]
		list.First = c.First(list.Kind)
		switch {
		case a.Strict, a.Severed == list.Kind && len(list.First) == 0:
			list.First = list.Names()
		case list.Kind == alg.Kex:
			list.keep = "a login happens once, and the policy allows the present key exchange"
		case c.Elsewhere:
			list.keep = "transfers here are not limited by a CPU"
		case c.Stays():
			list.keep = "nothing else is notably faster than the present choice"
		case c.Uncertain():
			list.keep = "there is not enough data to say whether a change gains anything"
		case !c.Compares():
			list.keep = "what ssh uses now was not measured: there is nothing to compare with"
		default:
			list.keep = "the advised cipher needs none"
		}
	}
}

// Changes reports whether the advice changes anything.
func (a *Advice) Changes() bool {
	return slices.ContainsFunc(a.Lists, func(l List) bool { return len(l.First) > 0 })
}

// fill adds the figures of a cipher or a MAC: those of its best option among the matching ones.
func (c *Listed) fill(kind alg.Kind, options []rank.Row, match func(alg.Suite) bool) {
	c.place = unmeasured
	if i := slices.IndexFunc(options, func(o rank.Row) bool { return match(o.Suite) }); i >= 0 {
		c.place = i
		var groups, figures []string
		for _, cell := range options[i].Cells {
			groups, figures = append(groups, cell.Group), append(figures, figureOf(cell))
		}
		c.Group, c.figure = strings.Join(groups, "/"), strings.Join(figures, ", ")
	}
	c.Reason = c.reason(kind)
}

// fillKex fills in the place, the group, the login time and the reason of a listed key exchange.
// Post-quantum ones come first, measured or not, unless the policy is classical.
func (c *Listed) fillKex(options []rank.Exchange, classical bool) {
	c.place = unmeasured
	for i, k := range options {
		if sameName(alg.Kex, k.Name, c.Name) {
			c.place, c.Group = i, k.Group
			if k.Login.Known() {
				c.figure = "login " + unit.Milliseconds(k.Login.Value())
			}
		}
	}
	if known, _ := alg.Lookup(alg.Kex, c.Name); !known.PostQuantum && !classical {
		c.place += 2 * unmeasured
	}
	c.Reason = c.reason(alg.Kex)
}

// reason words the reason of a choice.
func (c Listed) reason(kind alg.Kind) string {
	known, _ := alg.Lookup(kind, c.Name)
	return strings.Join(text.NonEmpty(map[bool]string{true: "post-quantum"}[known.PostQuantum], cmp.Or(c.figure, "not measured")), ", ")
}

func figureOf(c rank.Cell) string {
	words := []string{}
	switch {
	case c.Throughput.Known():
		words = append(words, unit.Throughput(c.Throughput.Value()).String())
	case c.Total.Known():
		words = append(words, fmt.Sprintf("%.2f CPU s/GB", c.Total.Value()))
	}
	if c.Direction != "" {
		words = append(words, string(c.Direction))
	}
	if c.Suite.MAC != "" {
		words = append(words, "with "+c.Suite.MAC)
	}
	if c.Basis == rank.Predicted {
		words = append(words, "(predicted)")
	}
	return strings.Join(words, " ")
}

func sameName(kind alg.Kind, a, b string) bool {
	return alg.Canonical(kind, a) == alg.Canonical(kind, b)
}

func (a *Advice) doubt(p Params) {
	add := func(when bool, text string) {
		if when {
			a.Notes = append(a.Notes, text)
		}
	}
	r := p.Ranking
	add(a.Severed != "", a.CannotConnect())
	add(a.Present.Cipher == "" && a.Severed == "", "the present configuration is unknown: there is nothing to compare with")
	add(r.Campaign.Imported != "", "the result was imported from an old log: measure again with sshpace bench")
	add(a.Present.Kex != a.Advised.Kex && a.Present.Kex != "", fmt.Sprintf("the key exchange becomes %s (now %s); it only affects logins", a.Advised.Kex, a.Present.Kex))
	for _, w := range r.Warnings {
		add(w.Name == "control" || w.Name == "noise" && a.Choice.Uncertain(), w.Text)
	}
}
