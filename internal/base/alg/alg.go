// Package alg knows the algorithms of the SSH protocol: their names, their standing, and the
// security policies that allow them. It holds facts, as embedded tables, and no speeds.
package alg

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// Kind is the protocol list that a name belongs to (RFC 4253 §7.1).
type Kind string

// The four lists of algorithms.
const (
	Cipher  Kind = "cipher"
	MAC     Kind = "mac"
	Kex     Kind = "kex"
	HostKey Kind = "hostkey"
)

// Kinds are all four, and Measured those that a run measures and advice covers.
var (
	Kinds    = []Kind{Cipher, MAC, Kex, HostKey}
	Measured = Kinds[:3]
)

// Status is the classical standing of an algorithm. The zero value means that the name is unknown,
// which ranks as unsafe.
type Status string

// The standings, best first.
const (
	Strong     Status = "strong"     // pick it
	Acceptable Status = "acceptable" // safe today, with a caveat in Reason
	Weak       Status = "weak"       // only to reach an old peer
	Broken     Status = "broken"     // never
)

// Sound reports whether an algorithm may be used without a second thought.
func (s Status) Sound() bool { return s == Strong || s == Acceptable }

// Algorithm is one row of the table.
type Algorithm struct {
	Name         string `json:"name"`
	Kind         Kind   `json:"kind"`
	AEAD         bool   `json:"aead"`         // ciphers: carries its own authentication tag
	ETM          bool   `json:"etm"`          // MACs: computed over the ciphertext
	PostQuantum  bool   `json:"post_quantum"` // key exchanges
	Pseudo       bool   `json:"pseudo"`       // a signal in the kex list, not a key exchange
	Status       Status `json:"status"`
	Reason       string `json:"reason"`
	EquivalentTo string `json:"equivalent_to"` // the same computation under its standard name
	Terrapin     string `json:"terrapin"`      // standing under CVE-2023-48795
	RekeyBytes   int64  `json:"openssh_rekey_bytes"`
}

//go:embed algorithms.json
var algorithmsJSON []byte

type key struct {
	kind Kind
	name string
}

var algorithms = sync.OnceValue(func() map[key]Algorithm {
	var rows []Algorithm
	if err := json.Unmarshal(algorithmsJSON, &rows); err != nil {
		panic("alg: embedded algorithms.json: " + err.Error())
	}
	table := make(map[key]Algorithm, len(rows))
	for _, row := range rows {
		table[key{row.Kind, row.Name}] = row
	}
	return table
})

// Lookup returns the facts about a name. ok is false for a name that the table does not know; the
// row returned then holds only name and kind.
func Lookup(kind Kind, name string) (a Algorithm, ok bool) {
	if a, ok = algorithms()[key{kind, name}]; !ok {
		a = Algorithm{Name: name, Kind: kind}
	}
	return a, ok
}

// Names returns all names of a kind that the table has, sorted.
func Names(kind Kind) []string {
	var names []string
	for k := range algorithms() {
		if k.kind == kind {
			names = append(names, k.name)
		}
	}
	slices.Sort(names)
	return names
}

// Canonical returns the standard name of the same computation: two names of one algorithm have one
// canonical name. Unknown names are their own.
func Canonical(kind Kind, name string) string {
	if a, _ := Lookup(kind, name); a.EquivalentTo != "" {
		return a.EquivalentTo
	}
	return name
}

// Primitive names what a MAC computes: hmac-sha1 for hmac-sha1-96-etm@openssh.com. Truncating the
// tag (-96, RFC 4253 section 6.4) and applying it to the ciphertext (-etm, OpenSSH PROTOCOL section
// 1.7) do not change the computation.
func Primitive(mac string) string {
	name, _, _ := strings.Cut(mac, "@")
	return strings.TrimSuffix(strings.TrimSuffix(name, "-etm"), "-96")
}

// IsAEAD reports whether a cipher carries its own tag, so that no MAC is negotiated (OpenSSH
// kex.c:kex_choose_conf).
func IsAEAD(cipher string) bool {
	a, _ := Lookup(Cipher, cipher)
	return a.AEAD
}

// Match reports whether name matches any of the patterns: exact names or globs with * and ?. An
// empty list matches everything.
func Match(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, name) })
}

// Suite is the set of names that one connection negotiates. MAC is "" where the cipher is AEAD;
// HostKey may be "" where nobody looked at it.
type Suite struct {
	Cipher  string `json:"cipher,omitempty"`
	MAC     string `json:"mac,omitempty"`
	Kex     string `json:"kex,omitempty"`
	HostKey string `json:"hostkey,omitempty"`
}

// NewSuite returns the suite, without its MAC if the cipher is AEAD.
func NewSuite(cipher, mac, kex string) Suite {
	if IsAEAD(cipher) {
		mac = ""
	}
	return Suite{Cipher: cipher, MAC: mac, Kex: kex}
}

// Name returns the suite's name of the given kind; "" if it has none.
func (s Suite) Name(kind Kind) string {
	return map[Kind]string{Cipher: s.Cipher, MAC: s.MAC, Kex: s.Kex, HostKey: s.HostKey}[kind]
}

// Keyword returns the keyword of ssh_config(5) and sshd_config(5) for a list.
func (k Kind) Keyword() string {
	return map[Kind]string{Cipher: "Ciphers", MAC: "MACs", Kex: "KexAlgorithms", HostKey: "HostKeyAlgorithms"}[k]
}

// Settings returns the -o settings that ask OpenSSH for the suite, one for each name that is not
// "".
func (s Suite) Settings() []string {
	var settings []string
	for _, kind := range Kinds {
		if name := s.Name(kind); name != "" {
			settings = append(settings, kind.Keyword()+"="+name)
		}
	}
	return settings
}

// Bulk returns the part of the suite that decides the bulk speed.
func (s Suite) Bulk() Suite { return Suite{Cipher: s.Cipher, MAC: s.MAC} }

// Computation returns the canonical names of the per-byte computation: suites with equal results
// compute the same.
func (s Suite) Computation() Suite {
	return NewSuite(Canonical(Cipher, s.Cipher), Canonical(MAC, s.MAC), "")
}

// String names the suite, such as "aes128-ctr umac-64@openssh.com".
func (s Suite) String() string {
	parts := slices.DeleteFunc([]string{s.Cipher, s.MAC, s.Kex, s.HostKey}, func(p string) bool { return p == "" })
	return strings.Join(parts, " ")
}

// Status is the worst standing among the cipher and the MAC of the suite and, where present, its
// key exchange and host key; "" when one name is unknown.
func (s Suite) Status() Status {
	worst := Strong
	for _, kind := range Kinds {
		name := s.Name(kind)
		if name == "" {
			continue
		}
		a, _ := Lookup(kind, name)
		if rank(a.Status) > rank(worst) {
			worst = a.Status
		}
	}
	return worst
}

// rank orders standings from best to worst; unknown is worst.
func rank(s Status) int {
	if i := slices.Index([]Status{Strong, Acceptable, Weak, Broken}, s); i >= 0 {
		return i
	}
	return 4
}

// SoundFirst returns names by standing, best first; names of one standing keep their order.
func SoundFirst(kind Kind, names []string) []string {
	standing := func(name string) int {
		a, _ := Lookup(kind, name)
		return rank(a.Status)
	}
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int { return cmp.Compare(standing(a), standing(b)) })
}

// CheapKex lists common key exchanges that cost little, the cheapest first.
var CheapKex = []string{
	"curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "mlkem768x25519-sha256",
	"sntrup761x25519-sha512", "sntrup761x25519-sha512@openssh.com",
}
