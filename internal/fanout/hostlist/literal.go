package hostlist

import (
	"math/big"

	"sshpace/internal/base/wildcard"
)

// Values of the INI form are literals of Python where possible, optionally followed by a comment,
// and otherwise unchanged text, # and all (ast.literal_eval in Ansible's plugin "ini").
var (
	literalText   = wildcard.Regexp(`^(?:'([^'\\]*)'|"([^"\\]*)")\s*(?:#.*)?$`)
	literalNumber = wildcard.Regexp(`^(0|[1-9](?:_?[0-9])*|0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+)\s*(?:#.*)?$`)
	literalNone   = wildcard.Regexp(`^None\s*(?:#.*)?$`)
)

// literal reads the value of a variable.
func literal(text string) value {
	if m := literalText().FindStringSubmatch(text); m != nil {
		return value{text: m[1] + m[2]}
	}
	if m := literalNumber().FindStringSubmatch(text); m != nil {
		if n, ok := new(big.Int).SetString(m[1], 0); ok {
			return value{text: n.String()}
		}
	}
	if literalNone().MatchString(text) {
		return value{null: true}
	}
	return value{text: text}
}
