package alg

import (
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"sshpace/internal/base/fault"
)

// Policy is a named set of algorithms that a guideline or a release allows. A nil list means that
// the policy says nothing about that kind; an empty one that it allows none.
type Policy struct {
	Name    string   `json:"name"`
	Title   string   `json:"title"`
	Source  string   `json:"source"`
	Ciphers []string `json:"cipher"`
	MACs    []string `json:"mac"`
	Kex     []string `json:"kex"`
	HostKey []string `json:"hostkey"`
	Aliases []string `json:"aliases"`
}

//go:embed policies.json
var policiesJSON []byte

// modern is sshpace's own default: strong names only. Its order has no meaning.
func modern() Policy {
	p := Policy{
		Name:   "modern",
		Title:  "sshpace default: strong algorithms only",
		Source: "status column of sshpace's algorithm table",
	}
	lists := map[Kind]*[]string{Cipher: &p.Ciphers, MAC: &p.MACs, Kex: &p.Kex, HostKey: &p.HostKey}
	for k, a := range algorithms() {
		if a.Status == Strong && !a.Pseudo {
			*lists[k.kind] = append(*lists[k.kind], a.Name)
		}
	}
	for _, list := range lists {
		slices.Sort(*list)
	}
	return p
}

// Policies returns all embedded policies, "modern" first.
var Policies = sync.OnceValue(func() []Policy {
	var rows []Policy
	if err := json.Unmarshal(policiesJSON, &rows); err != nil {
		panic("alg: embedded policies.json: " + err.Error())
	}
	return append([]Policy{modern()}, rows...)
})

// LookupPolicy finds a policy by name or alias, in upper or lower case. The error names the nearest
// ones, or all.
func LookupPolicy(name string) (Policy, error) {
	var names, all []string
	for _, p := range Policies() {
		is := func(other string) bool { return strings.EqualFold(other, name) }
		if is(p.Name) || slices.ContainsFunc(p.Aliases, is) {
			return p, nil
		}
		names, all = append(names, p.Name), append(append(all, p.Name), p.Aliases...)
	}
	return Policy{}, fault.Usage(fault.Near("--policy ", name, all, "policies: "+strings.Join(names, ", ")), "unknown policy %q", name)
}

// Allows reports whether the policy allows a name of the given kind. A kind that the policy is
// silent about is allowed.
func (p Policy) Allows(kind Kind, name string) bool {
	list := map[Kind][]string{Cipher: p.Ciphers, MAC: p.MACs, Kex: p.Kex, HostKey: p.HostKey}[kind]
	return list == nil || slices.Contains(list, name) || slices.Contains(list, Canonical(kind, name))
}
