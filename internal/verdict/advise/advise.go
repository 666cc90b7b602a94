// Package advise turns a ranking, a security policy and the present
// configuration into the configuration that is fastest among what the policy
// allows, with a reason for every choice. What is weak, broken, unknown, or
// open to Terrapin is never advised, however fast it is. It does no I/O.
package advise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// Params of New.
type Params struct {
	Ranking *rank.Ranking
	Policy  Policy
	Client  Side
	Server  Side
	Strict  bool // the lines disable what is not advised, instead of putting what is advised first
}

// Side is how one program is configured.
type Side struct {
	Offer   alg.Offer // what it offers now, in its order (ssh -G, sshd -T); empty if unknown
	Default alg.Offer // what it offers without any configuration; empty if unknown
	Old     bool      // it does not know lists that begin with ^ (before OpenSSH 8.1)
}

// Advice is the result.
type Advice struct {
	Policy  string
	Lists   []List
	Present alg.Suite // what is negotiated now; empty if that is not known, or Severed
	Advised alg.Suite // what would be
	Severed alg.Kind  // present client and server share no algorithm of this kind: they cannot connect
	Gains   []rank.Gain
	Notes   []string // what is in doubt
	Ranking *rank.Ranking
	Strict  bool

	client, server Side
}

// List is one line of the configuration.
type List struct {
	Kind    alg.Kind
	Keyword string // of ssh_config(5) and sshd_config(5)
	Choices []Choice
	Dropped []Choice // offered now, but not advised
}

// Choice is one name with its reason.
type Choice struct {
	Name   string
	Group  string // of equally fast ones; "" where it was not measured
	Reason string
	figure string
	score  int
}

// Names are the names of a list.
func (l List) Names() []string {
	var names []string
	for _, c := range l.Choices {
		names = append(names, c.Name)
	}
	return names
}

// ErrNothing says that the policy allows nothing that both sides have.
var ErrNothing = errors.New("the policy allows nothing that was measured")

var keywords = []struct {
	kind alg.Kind
	name string
}{{alg.Cipher, "Ciphers"}, {alg.MAC, "MACs"}, {alg.Kex, "KexAlgorithms"}}

// unmeasured is the score of what was not measured: after everything else.
const unmeasured = 1 << 20

// New makes the advice. Its error is ErrNothing, with the list that is empty.
func New(p Params) (*Advice, error) {
	a := &Advice{Policy: p.Policy.Name, Ranking: p.Ranking, Strict: p.Strict, client: p.Client, server: p.Server}
	shared := p.shared()
	for _, k := range keywords {
		list := List{Kind: k.kind, Keyword: k.name}
		for _, name := range p.candidates(k.kind) {
			if why := p.Policy.refuses(k.kind, name, p.Ranking.Environment.StrictKex); why != "" {
				if slices.Contains(p.Client.Offer.List(k.kind), name) || slices.Contains(p.Server.Offer.List(k.kind), name) {
					list.Dropped = append(list.Dropped, Choice{Name: name, Reason: why})
				}
				continue
			}
			list.Choices = append(list.Choices, Choice{Name: name})
		}
		a.Lists = append(a.Lists, list)
	}
	a.order(p)
	for _, list := range a.Lists {
		needed := list.Kind != alg.MAC || slices.ContainsFunc(a.Lists[0].Choices, func(c Choice) bool { return !alg.IsAEAD(c.Name) })
		if needed && !slices.ContainsFunc(list.Choices, func(c Choice) bool { return slices.Contains(shared.List(list.Kind), c.Name) }) {
			return nil, fmt.Errorf("%w: no %s of policy %s is shared by client and server", ErrNothing, list.Kind, a.Policy)
		}
	}
	a.Present = negotiate(p.Client.Offer, shared)
	if a.Severed = p.severed(a.Present); a.Severed != "" {
		a.Present = alg.Suite{}
	}
	a.Advised = negotiate(a.offer(), shared)
	a.gains()
	a.doubt(p)
	return a, nil
}

// shared is what the server accepts.
func (p Params) shared() alg.Offer {
	if len(p.Server.Offer.Ciphers) > 0 {
		return p.Server.Offer
	}
	if shared := p.Ranking.Campaign.Shared; len(shared.Ciphers) > 0 {
		return shared
	}
	return p.Ranking.Campaign.Offer
}

// severed is the kind of which client and server share no algorithm, so that
// nothing but present can be negotiated; "" if there is none, or it is not known
// what the server accepts.
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

// CannotConnect says that the present configuration does not work; "" if it
// does, or that is not known.
func (a *Advice) CannotConnect() string {
	what := map[alg.Kind]string{alg.Cipher: "cipher", alg.MAC: "MAC", alg.Kex: "key exchange"}[a.Severed]
	if what == "" {
		return ""
	}
	return "the present configuration shares no " + what + " with this server: it cannot connect"
}

// candidates are all names of a kind that could be advised, in the order that
// decides between equals: the policy's where it has one, else the client's.
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

// offer is the advice as lists.
func (a *Advice) offer() alg.Offer {
	return alg.Offer{Ciphers: a.Lists[0].Names(), MACs: a.Lists[1].Names(), Kex: a.Lists[2].Names()}
}

// negotiate is what the client's lists lead to (RFC 4253 §7.1).
func negotiate(client, server alg.Offer) alg.Suite {
	first := func(kind alg.Kind) string {
		for _, name := range client.List(kind) {
			if slices.Contains(server.List(kind), name) {
				return name
			}
		}
		return ""
	}
	return alg.NewSuite(first(alg.Cipher), first(alg.MAC), first(alg.Kex))
}

// order sorts each list by the groups of the ranking; equals stay as they are.
func (a *Advice) order(p Params) {
	groups := groupIndex(p.Ranking)
	allowed := a.Lists[1].Names()
	for i := range a.Lists[0].Choices {
		c := &a.Lists[0].Choices[i]
		best, ok := bestCell(p.Ranking, func(s alg.Suite) bool {
			return sameName(alg.Cipher, s.Cipher, c.Name) && (s.MAC == "" || containsName(alg.MAC, allowed, s.MAC))
		}, groups)
		c.fill(best, ok)
	}
	sortChoices(a.Lists[0].Choices)
	leader := slices.IndexFunc(a.Lists[0].Choices, func(c Choice) bool { return !alg.IsAEAD(c.Name) && c.score < unmeasured })
	for i := range a.Lists[1].Choices {
		c := &a.Lists[1].Choices[i]
		best, ok := scored{}, false
		if leader >= 0 {
			best, ok = bestCell(p.Ranking, func(s alg.Suite) bool {
				return sameName(alg.Cipher, s.Cipher, a.Lists[0].Choices[leader].Name) && sameName(alg.MAC, s.MAC, c.Name)
			}, groups)
		}
		c.fill(best, ok)
	}
	sortChoices(a.Lists[1].Choices)
	a.orderKex(p)
}

func (c *Choice) fill(best scored, ok bool) {
	c.score = unmeasured
	if ok {
		c.score, c.Group, c.figure = best.score, best.group, best.figure
	}
}

func sortChoices(list []Choice) {
	slices.SortStableFunc(list, func(a, b Choice) int { return cmp.Compare(a.score, b.score) })
	for i := range list {
		list[i].Reason = list[i].reason(alg.Cipher)
	}
}

// orderKex sorts by login, post-quantum ones first.
func (a *Advice) orderKex(p Params) {
	list := a.Lists[2].Choices
	for i := range list {
		c := &list[i]
		c.score = unmeasured
		group, last := -1, ""
		for _, k := range p.Ranking.Kex {
			if k.Group != last {
				group, last = group+1, k.Group
			}
			if sameName(alg.Kex, k.Name, c.Name) {
				c.score, c.Group = group, k.Group
				if k.Login != nil {
					c.figure = fmt.Sprintf("login %.1f ms", k.Login.Value/1e6)
				}
			}
		}
		if known, _ := alg.Lookup(alg.Kex, c.Name); !known.PostQuantum && !p.Policy.Classical {
			c.score += 2 * unmeasured
		}
	}
	slices.SortStableFunc(list, func(a, b Choice) int { return cmp.Compare(a.score, b.score) })
	for i := range list {
		list[i].Reason = list[i].reason(alg.Kex)
	}
}

// reason is a choice in words.
func (c Choice) reason(kind alg.Kind) string {
	var words []string
	if kind == alg.Kex {
		if known, _ := alg.Lookup(alg.Kex, c.Name); known.PostQuantum {
			words = append(words, "post-quantum")
		}
	}
	if c.Group == "" {
		return strings.Join(append(words, "not measured"), ", ")
	}
	words = append(words, "group "+c.Group)
	if c.figure != "" {
		words = append(words, c.figure)
	}
	return strings.Join(words, ", ")
}

// scored is the best cell that a name has.
type scored struct {
	score  int // sum of the numbers of its groups over all directions
	group  string
	figure string
}

// groupIndex numbers the groups of each direction from 0.
func groupIndex(r *rank.Ranking) map[record.Direction]map[string]int {
	index := map[record.Direction]map[string]int{}
	for _, c := range r.Bulk {
		if index[c.Direction] == nil {
			index[c.Direction] = map[string]int{}
		}
		if _, seen := index[c.Direction][c.Group]; !seen {
			index[c.Direction][c.Group] = len(index[c.Direction])
		}
	}
	return index
}

// bestCell adds up, over the directions, the best group among the cells that
// match. ok is false where a direction has none.
func bestCell(r *rank.Ranking, match func(alg.Suite) bool, groups map[record.Direction]map[string]int) (scored, bool) {
	best := map[record.Direction]rank.Cell{}
	for _, c := range r.Bulk { // best first
		if _, have := best[c.Direction]; !have && match(c.Suite) {
			best[c.Direction] = c
		}
	}
	var out scored
	if len(best) == 0 || len(best) < len(groups) {
		return out, false
	}
	var names, figures []string
	for _, d := range []record.Direction{record.Upload, record.Download, ""} {
		c, ok := best[d]
		if !ok {
			continue
		}
		out.score += groups[d][c.Group]
		names = append(names, c.Group)
		figures = append(figures, figureOf(c))
	}
	out.group = strings.Join(names, "/")
	out.figure = strings.Join(figures, ", ")
	return out, true
}

func figureOf(c rank.Cell) string {
	words := []string{}
	if c.Throughput != nil {
		words = append(words, fmt.Sprintf("%.0f MB/s", c.Throughput.Value/1e6))
	}
	if total := c.Total(); total > 0 {
		words = append(words, fmt.Sprintf("%.2f ns/B", total))
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

func containsName(kind alg.Kind, names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return sameName(kind, n, name) })
}

// gains compares what is negotiated now with what would be.
func (a *Advice) gains() {
	for _, d := range []record.Direction{record.Upload, record.Download, ""} {
		from, ok := a.Ranking.Find(a.Present, d)
		to, ok2 := a.Ranking.Find(a.Advised, d)
		if ok && ok2 {
			a.Gains = append(a.Gains, a.Ranking.Gain(from, to))
		}
	}
}

// Matters reports whether the advice changes anything that can be told apart.
func (a *Advice) Matters() bool {
	return a.Present.Bulk() != a.Advised.Bulk() && slices.ContainsFunc(a.Gains, func(g rank.Gain) bool { return !g.Tie })
}

// busyCPU is the share of a core from which on a side's CPU can be the limit.
const busyCPU = 0.6

// Limited reports whether a CPU may limit the present configuration: if not, the
// link, the window or a disk does, and no cipher changes that. On loopback there
// is nothing else that could, but other work on the machine.
func (a *Advice) Limited() bool {
	return a.Ranking.Campaign.Server != record.ServerRemote || !slices.ContainsFunc(a.Gains, func(g rank.Gain) bool {
		c := g.From
		if c.Throughput == nil || c.Client == nil {
			return false
		}
		share := func(q *rank.Quantity) float64 {
			if q == nil {
				return 1 // not known: it may be the limit
			}
			return c.Throughput.Value * q.Value / 1e9
		}
		return share(c.Client) < busyCPU && share(c.Server) < busyCPU
	})
}

func (a *Advice) doubt(p Params) {
	add := func(when bool, text string) {
		if when {
			a.Notes = append(a.Notes, text)
		}
	}
	r := p.Ranking
	add(a.Severed != "", a.CannotConnect())
	add(a.Present.Cipher == "" && a.Severed == "", "the present configuration is not known: nothing to compare with")
	add(r.Campaign.Imported != "", "the result was imported from an old log: measure again with sshpace bench")
	add(a.Present.Kex != a.Advised.Kex && a.Present.Kex != "", fmt.Sprintf("the key exchange becomes %s (now %s); it matters at login only", a.Advised.Kex, a.Present.Kex))
	for _, w := range r.Warnings {
		add(w.Name == "busy" || w.Name == "noise" || w.Name == "control", w.Text)
	}
}
