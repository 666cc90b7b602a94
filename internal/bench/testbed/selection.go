//go:build linux

package testbed

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/fault"
)

// Selection is the user's selection of algorithms.
type Selection struct {
	Patterns map[alg.Kind][]string // names and globs; empty: all
	Policy   string                // "" for none
}

// apply narrows an offer to the selection. A name without a match is an error that says which side
// lacks it.
func (sel Selection) apply(shared, client, server alg.Offer) (alg.Offer, error) {
	meant := map[alg.Kind][]string{}
	for _, kind := range alg.Measured {
		for _, word := range alg.Words(sel.Patterns[kind]) {
			names := alg.Named(word, shared.List(kind))
			if len(names) == 0 {
				return shared, missing(kind, word, shared, client, server)
			}
			meant[kind] = append(meant[kind], names...)
		}
	}
	policy := alg.Policy{}
	if sel.Policy != "" {
		var err error
		if policy, err = alg.LookupPolicy(sel.Policy); err != nil {
			return shared, err
		}
	}
	chosen := shared.Filter(func(kind alg.Kind, name string) bool {
		return (len(meant[kind]) == 0 || slices.Contains(meant[kind], name)) && policy.Allows(kind, name)
	})
	return chosen, sel.checkLeft(chosen)
}

// missing says why a word selects nothing that can be measured.
func missing(kind alg.Kind, word string, shared, client, server alg.Offer) error {
	names := shared.List(kind)
	hint := fault.Near("--"+string(kind)+" ", word, names, "both sides have: "+strings.Join(names, " "))
	_, known := alg.Lookup(kind, word)
	switch {
	case len(alg.Named(word, client.List(kind))) > 0:
		return fault.Usage(hint, "%s %q: the server does not offer it", kind, word)
	case len(alg.Named(word, server.List(kind))) > 0:
		return fault.Usage(hint, "%s %q: this client was built without it", kind, word)
	case known:
		return fault.Usage(hint, "%s %q: neither side has it", kind, word)
	}
	for _, other := range alg.Measured {
		if other != kind && len(alg.Named(word, shared.List(other))) > 0 {
			return fault.Usage(fmt.Sprintf("did you mean --%s %s", other, word), "%q is not a %s but a %s", word, kind, other)
		}
	}
	return fault.Usage(hint, "unknown %s %q", kind, word)
}

// checkLeft makes sure that connections are still possible. Without a MAC those with an AEAD cipher
// are, and the others make no cells (alg.Fold).
func (sel Selection) checkLeft(o alg.Offer) error {
	hint := "allow more with --cipher, --mac and --kex, or another --policy"
	switch {
	case len(o.Ciphers) == 0:
		return fault.Usage(hint, "no cipher is left to measure")
	case len(o.Kex) == 0:
		return fault.Usage(hint, "no key exchange is left to measure")
	case len(o.MACs) == 0 && !slices.ContainsFunc(o.Ciphers, alg.IsAEAD):
		return fault.Usage(hint, "no MAC is left to measure with %s", strings.Join(o.Ciphers, ", "))
	}
	return nil
}
