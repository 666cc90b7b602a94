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
	meant := map[alg.Kind][]string{}
	for _, kind := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		for _, word := range alg.Words(sel.patterns[kind]) {
			names := alg.Named(word, shared.List(kind))
			if len(names) == 0 {
				return shared, missing(kind, word, shared, client, server)
			}
			meant[kind] = append(meant[kind], names...)
		}
	}
	policy := alg.Policy{}
	if sel.policy != "" {
		var err error
		if policy, err = alg.LookupPolicy(sel.policy); err != nil {
			return shared, unknownPolicy(sel.policy, err)
		}
	}
	chosen := shared.Filter(func(kind alg.Kind, name string) bool {
		return (len(meant[kind]) == 0 || slices.Contains(meant[kind], name)) && policy.Allows(kind, name)
	})
	return chosen, sel.checkLeft(chosen)
}

// missing says why a word means nothing that can be measured.
func missing(kind alg.Kind, word string, shared, client, server alg.Offer) error {
	names := shared.List(kind)
	hint := didYouMean("--"+string(kind)+" ", word, names, "both sides have: "+strings.Join(names, " "))
	_, known := alg.Lookup(kind, word)
	switch {
	case len(alg.Named(word, client.List(kind))) > 0:
		return usageError(hint, "%s %q: the server does not offer it", kind, word)
	case len(alg.Named(word, server.List(kind))) > 0:
		return usageError(hint, "%s %q: this client was built without it", kind, word)
	case known:
		return usageError(hint, "%s %q: neither side has it", kind, word)
	}
	for _, other := range []alg.Kind{alg.Cipher, alg.MAC, alg.Kex} {
		if other != kind && len(alg.Named(word, shared.List(other))) > 0 {
			return usageError(fmt.Sprintf("did you mean --%s %s", other, word), "%q is no %s but a %s", word, kind, other)
		}
	}
	return usageError(hint, "unknown %s %q", kind, word)
}

// unknownPolicy names the policies that a name may have meant.
func unknownPolicy(name string, err error) error {
	var names []string
	for _, p := range alg.Policies() {
		names = append(append(names, p.Name), p.Aliases...)
	}
	return usageError(didYouMean("--policy ", name, names, "name one of those with --policy, or a TOML file with sshpace advise --policy"), "%s", err)
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
