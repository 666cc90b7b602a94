package alg

import "slices"

// Offer is what one side can negotiate, each list in its own order.
type Offer struct {
	Ciphers  []string `json:"ciphers"`
	MACs     []string `json:"macs"`
	Kex      []string `json:"kex"`
	HostKeys []string `json:"hostkeys,omitempty"`
}

// List returns the names of one kind.
func (o Offer) List(kind Kind) []string {
	return map[Kind][]string{Cipher: o.Ciphers, MAC: o.MACs, Kex: o.Kex, HostKey: o.HostKeys}[kind]
}

// Without returns the names of the offer's kind that other lacks.
func (o Offer) Without(other Offer, kind Kind) []string {
	var missing []string
	for _, name := range o.List(kind) {
		if a, _ := Lookup(kind, name); !a.Pseudo && !slices.Contains(other.List(kind), name) {
			missing = append(missing, name)
		}
	}
	return missing
}

// Filter keeps the names that keep accepts.
func (o Offer) Filter(keep func(kind Kind, name string) bool) Offer {
	filtered := func(kind Kind) []string {
		var names []string
		for _, name := range o.List(kind) {
			if a, _ := Lookup(kind, name); !a.Pseudo && keep(kind, name) {
				names = append(names, name)
			}
		}
		return names
	}
	return Offer{filtered(Cipher), filtered(MAC), filtered(Kex), filtered(HostKey)}
}

// With returns the offer extended by the names of a suite, as far as all has them.
func (o Offer) With(suite Suite, all Offer) Offer {
	return all.Filter(func(kind Kind, name string) bool {
		return name == suite.Name(kind) || slices.Contains(o.List(kind), name)
	})
}

// Intersect keeps what both sides have, in o's order: the client's order decides a negotiation (RFC
// 4253 §7.1).
func (o Offer) Intersect(server Offer) Offer {
	return o.Filter(func(kind Kind, name string) bool { return slices.Contains(server.List(kind), name) })
}

// Negotiate returns the suite that a client with this offer and a server agree on: of each list the
// client's first name that the server has (RFC 4253 §7.1).
func (o Offer) Negotiate(server Offer) Suite {
	first := func(kind Kind) string {
		for _, name := range o.List(kind) {
			if slices.Contains(server.List(kind), name) {
				return name
			}
		}
		return ""
	}
	return NewSuite(first(Cipher), first(MAC), first(Kex))
}

// Combinations counts how the naive matrix folds into cells.
type Combinations struct {
	Total int `json:"total"` // ciphers x MACs x key exchanges, as a shell loop counts them
	Bulk  int `json:"bulk"`  // distinct computations per byte
	Kex   int `json:"kex"`   // distinct key exchanges
}

// Space is an offer reduced to the distinct computations to measure: AEAD ciphers ignore the MAC,
// and aliases are one computation.
type Space struct {
	Offer Offer               `json:"offer"`
	Bulk  []Suite             `json:"-"` // one per distinct cipher and MAC
	Kex   []string            `json:"-"` // one name per distinct key exchange
	Alias map[string][]string `json:"-"` // of Kex: the other offered names of the same exchange
}

// Fold reduces an offer that both sides share to a Space.
func Fold(o Offer) Space {
	s := Space{Offer: o, Alias: map[string][]string{}}
	seen := map[Suite]bool{}
	for _, cipher := range o.Ciphers {
		macs := o.MACs
		if IsAEAD(cipher) {
			macs = []string{""}
		}
		for _, mac := range macs {
			id := Suite{Cipher: cipher, MAC: mac}.Computation()
			if !seen[id] {
				seen[id] = true
				s.Bulk = append(s.Bulk, Suite{Cipher: cipher, MAC: mac})
			}
		}
	}
	first := map[string]string{}
	for _, name := range o.Kex {
		id := Canonical(Kex, name)
		if kept, ok := first[id]; ok {
			s.Alias[kept] = append(s.Alias[kept], name)
			continue
		}
		first[id] = name
		s.Kex = append(s.Kex, name)
	}
	return s
}

// Combinations counts the naive matrix and the folded one. Where no MAC is shared, AEAD ciphers
// still make one combination each per key exchange.
func (s Space) Combinations() Combinations {
	rows := 0
	for _, cipher := range s.Offer.Ciphers {
		if IsAEAD(cipher) {
			rows += max(1, len(s.Offer.MACs))
		} else {
			rows += len(s.Offer.MACs)
		}
	}
	return Combinations{Total: rows * len(s.Offer.Kex), Bulk: len(s.Bulk), Kex: len(s.Kex)}
}
