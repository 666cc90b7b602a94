package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
)

// AlgorithmLists are the keywords whose value is a list of algorithms, with + - and ^; ssh -G
// prints the resulting list, joined by commas.
var AlgorithmLists = []Keyword{
	Ciphers, MACs, KexAlgorithms, HostKeyAlgorithms, PubkeyAcceptedAlgorithms,
	HostbasedAcceptedAlgorithms, CASignatureAlgorithms,
}

var errNoAlgorithms = errors.New("no algorithm is left in the list")

// assemble applies a list to the defaults (kex.c:kex_assemble_names): + adds at the end, - removes
// by pattern, ^ puts in front, anything else replaces.
func assemble(list string, defaults, supported []string) ([]string, error) {
	switch list[0] {
	case '-':
		return slices.DeleteFunc(slices.Clone(defaults), func(name string) bool {
			return wildcard.MatchList(name, list[1:])
		}), nil
	case '+':
		added := strings.Split(list[1:], ",")
		if i := slices.Index(added, ""); i >= 0 {
			added = added[:i] // ssh looks no further
		}
		return pick(slices.Concat(defaults, added), supported)
	case '^':
		return pick(slices.Concat(strings.Split(list[1:], ","), defaults), supported)
	}
	return pick(strings.Split(list, ","), supported)
}

// pick returns the supported names that the patterns choose, in the order of the patterns and each
// once.
func pick(patterns, supported []string) ([]string, error) {
	var names []string
	for _, pattern := range patterns {
		if strings.HasPrefix(pattern, "!") {
			return nil, fmt.Errorf("%q: negation is not supported here", pattern)
		}
		for _, name := range supported {
			if wildcard.Match(name, pattern) && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, errNoAlgorithms
	}
	return names, nil
}

// algorithmKey is one list as it is written.
type algorithmKey struct {
	keyword Keyword
	text    string
}

// assembled is the result of such a list.
type assembled struct {
	names []string
	err   error
}

// assembleAll assembles every algorithm list once: thousands of hosts share them. An empty result
// is an error for the hosts it applies to.
func (c *Config) assembleAll() {
	c.lists = map[algorithmKey]assembled{}
	keep := func(stmts []stmt) {
		for _, s := range stmts {
			if slices.Contains(AlgorithmLists, s.key) {
				key := algorithmKey{s.key, s.value.Args[0]}
				c.lists[key] = c.assembled(key)
			}
		}
	}
	keep(c.options)
	for _, seg := range c.segments {
		keep(seg.stmts)
	}
}

func eachOnce(list string) (names []string) {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// assembled returns a list as all hosts have it, or assembles one that a single host has.
func (c *Config) assembled(key algorithmKey) assembled {
	if known, ok := c.lists[key]; ok {
		return known
	}
	supported := c.defaults.supported(key.keyword)
	if len(supported) == 0 { // no ssh to ask: names are taken as they are
		return assembled{names: eachOnce(key.text)}
	}
	names, err := assemble(key.text, c.defaults.list(key.keyword), supported)
	return assembled{names, err}
}
