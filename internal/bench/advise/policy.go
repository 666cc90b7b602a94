package advise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/rank"
)

// maxPolicy is the largest policy file that is read, in bytes.
const maxPolicy = 64 << 10

// Policy is the set of algorithms that may be advised, with preferences.
type Policy struct {
	alg.Policy
	// Ordered: the order of the policy's lists is a preference, which decides between equally fast
	// ones.
	Ordered bool
	// Classical gives post-quantum key exchanges no precedence.
	Classical bool
	strongest bool // only algorithms whose standing is strong
}

// Named returns a policy of the algorithm table.
func Named(name string) (Policy, error) {
	p, err := alg.LookupPolicy(name)
	return Policy{Policy: p, Ordered: p.Name != "modern", strongest: p.Name == "modern"}, err
}

// policyFile is the layout of a user's policy.
type policyFile struct {
	Name      string    `toml:"name"`
	Cipher    *[]string `toml:"cipher"` // a list that is missing allows all
	MAC       *[]string `toml:"mac"`
	Kex       *[]string `toml:"kex"`
	Classical bool      `toml:"classical"` // no precedence for post-quantum key exchanges
}

// ParsePolicy reads a policy in TOML: the lists cipher, mac and kex, in the order of preference,
// and name. Names that the algorithm table does not know are an error, because their safety is
// unknown.
func ParsePolicy(text, fallback string) (Policy, error) {
	var f policyFile
	meta, err := toml.Decode(text, &f)
	if err != nil {
		return Policy{}, fmt.Errorf("not a policy: %w", err)
	}
	if unknown := meta.Undecoded(); len(unknown) > 0 {
		return Policy{}, fmt.Errorf("unknown key %q; a policy has name, cipher, mac, kex and classical", unknown[0].String())
	}
	p := Policy{Policy: alg.Policy{Name: f.Name, Source: "file"}, Ordered: true, Classical: f.Classical}
	if p.Name == "" {
		p.Name = fallback
	}
	for _, list := range []struct {
		kind alg.Kind
		from *[]string
		to   *[]string
	}{{alg.Cipher, f.Cipher, &p.Ciphers}, {alg.MAC, f.MAC, &p.MACs}, {alg.Kex, f.Kex, &p.Kex}} {
		if list.from == nil {
			continue
		}
		if *list.to = *list.from; *list.to == nil {
			*list.to = []string{}
		}
		if i := slices.IndexFunc(*list.from, func(name string) bool { _, known := alg.Lookup(list.kind, name); return !known }); i >= 0 {
			return Policy{}, fmt.Errorf("%s %q is unknown, and so is its safety", list.kind, (*list.from)[i])
		}
	}
	if strings.ContainsFunc(p.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Policy{}, fmt.Errorf("the policy's name %q holds control characters", p.Name)
	}
	return p, nil
}

// Allow reports whether the policy allows a cipher with its MAC.
func (p Policy) Allow(r *rank.Ranking, s alg.Suite) bool {
	strict := r.Environment.StrictKex
	return p.Refuses(alg.Cipher, s.Cipher, strict) == "" && (s.MAC == "" || p.Refuses(alg.MAC, s.MAC, strict) == "")
}

// Only returns a ranking without the algorithms that the policy forbids.
func (p Policy) Only(r *rank.Ranking) *rank.Ranking {
	out := *r
	out.Bulk = slices.DeleteFunc(slices.Clone(r.Bulk), func(c rank.Cell) bool { return !p.Allow(r, c.Suite) })
	out.Kex = slices.DeleteFunc(slices.Clone(r.Kex), func(k rank.Exchange) bool { return p.Refuses(alg.Kex, k.Name, r.Environment.StrictKex) != "" })
	return &out
}

// Refuses returns the reason why the policy does not allow a name; "" if it does. strict reports
// whether both sides do strict key exchange (CVE-2023-48795).
func (p Policy) Refuses(kind alg.Kind, name string, strict *bool) string {
	a, known := alg.Lookup(kind, name)
	switch {
	case !known || a.Status == "":
		return "its safety is unknown"
	case a.Pseudo:
		return "it is a signal, not an algorithm"
	case a.Status == alg.Weak || a.Status == alg.Broken:
		return string(a.Status) + ": " + short(a.Reason)
	case p.strongest && a.Status != alg.Strong:
		return string(a.Status) + " only: " + short(a.Reason)
	case !p.Allows(kind, name):
		return "not in policy " + p.Name
	case kind == alg.Cipher && strings.HasPrefix(a.Terrapin, "affected") && strict == nil:
		return "affected by Terrapin (CVE-2023-48795), and it is not known whether both sides do strict key exchange"
	case kind == alg.Cipher && strings.HasPrefix(a.Terrapin, "affected") && !*strict:
		return "affected by Terrapin (CVE-2023-48795): not both sides do strict key exchange"
	}
	return ""
}

// short returns the first sentence of a reason.
func short(reason string) string {
	first, _, _ := strings.Cut(reason, ". ")
	return strings.TrimSuffix(first, ".")
}
