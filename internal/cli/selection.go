package cli

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
)

// selection is which algorithms the user wants measured.
type selection struct {
	patterns map[alg.Kind][]string // names and globs; empty: all
	policy   string                // "" for none
}

// apply narrows an offer to the selection. A name that matches nothing is an
// error that says where it is missing.
func (sel selection) apply(shared, client, server alg.Offer) (alg.Offer, error) {
	for _, kind := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		for _, pattern := range sel.patterns[kind] {
			if err := sel.check(kind, pattern, shared, client, server); err != nil {
				return shared, err
			}
		}
	}
	policy := alg.Policy{}
	if sel.policy != "" {
		var err error
		if policy, err = alg.LookupPolicy(sel.policy); err != nil {
			return shared, usageError("name one of those with --policy", "%s", err)
		}
	}
	chosen := shared.Filter(func(kind alg.Kind, name string) bool {
		return alg.Match(sel.patterns[kind], name) && policy.Allows(kind, name)
	})
	return chosen, sel.checkLeft(chosen)
}

// check finds out why a pattern matches nothing that can be measured.
func (sel selection) check(kind alg.Kind, pattern string, shared, client, server alg.Offer) error {
	matches := func(o alg.Offer) bool {
		return slices.ContainsFunc(o.List(kind), func(name string) bool { return alg.Match([]string{pattern}, name) })
	}
	_, known := alg.Lookup(kind, pattern)
	hint := fmt.Sprintf("both sides have: %s", strings.Join(shared.List(kind), " "))
	switch {
	case matches(shared):
		return nil
	case matches(client):
		return usageError(hint, "%s %q: the server does not offer it", kind, pattern)
	case matches(server):
		return usageError(hint, "%s %q: this client was built without it", kind, pattern)
	case known:
		return usageError(hint, "%s %q: neither side has it", kind, pattern)
	}
	return usageError(hint, "unknown %s %q", kind, pattern)
}

// checkLeft makes sure that connections are still possible. Without a MAC those
// with an AEAD cipher are, and the others make no cells (alg.Fold).
func (sel selection) checkLeft(o alg.Offer) error {
	hint := "allow more with --cipher, --mac and --kex, or another --policy"
	switch {
	case len(o.Ciphers) == 0:
		return usageError(hint, "no cipher is left to measure")
	case len(o.Kex) == 0:
		return usageError(hint, "no key exchange is left to measure")
	case len(o.MACs) == 0 && !slices.ContainsFunc(o.Ciphers, alg.IsAEAD):
		return usageError(hint, "no MAC is left to measure with %s", strings.Join(o.Ciphers, ", "))
	}
	return nil
}
