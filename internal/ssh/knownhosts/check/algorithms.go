package check

import (
	"slices"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
)

// defaultAlgorithms is OpenSSH's own order of preference (myproposal.h:KEX_DEFAULT_PK_ALG) without
// the security-key algorithms, which golang.org/x/crypto/ssh cannot verify for a host.
func defaultAlgorithms() []string {
	return []string{
		ssh.CertAlgoED25519v01,
		ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01,
		ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
		ssh.KeyAlgoED25519,
		ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
	}
}

// Algorithms returns all of preference in the order in which ssh offers them
// (sshconnect2.c:order_hostkeyalgs): what can be verified first, unless a key of the most preferred
// type is known, when preference is kept as it is. It is for a client that may accept unknown keys.
func Algorithms(x *index.Index, host string, port int, preference []string) []string {
	algs := preferred(preference)
	known := typesOf(x.Lookup(host, port))
	if len(algs) == 0 || known.types[plainType(algs[0])] {
		return algs
	}
	slices.SortStableFunc(algs, func(a, b string) int { return rank(known.prefers(a)) - rank(known.prefers(b)) })
	return algs
}

func preferred(preference []string) []string {
	if preference == nil {
		return defaultAlgorithms()
	}
	return slices.Clone(preference)
}

func rank(verifies bool) int {
	if verifies {
		return 0
	}
	return 1
}

// knownTypes holds the properties of a host's lines that matter for the choice of algorithms.
type knownTypes struct {
	types map[string]bool // key type -> a host key of this type is known
	ca    bool            // a certificate authority is known
}

// verifies reports whether a server's proof under an algorithm can be verified without falling back
// to anything else.
func (k knownTypes) verifies(name string) bool {
	if alg.Plain(name) != name {
		return k.ca
	}
	return k.types[plainType(name)]
}

// prefers reports whether ssh puts an algorithm first: those that verify, and certificates of a
// type of which a plain key is known, since the key inside may be that one.
func (k knownTypes) prefers(name string) bool {
	return k.verifies(name) || k.types[plainType(name)]
}

// typesOf collects the types. As in OpenSSH the first key of a type decides for the type: if it is
// revoked, the type is not preferred.
func typesOf(entries []index.Entry) knownTypes {
	known := knownTypes{types: make(map[string]bool)}
	for _, e := range entries {
		switch e.Marker {
		case knownhosts.MarkerCA:
			known.ca = true
		case knownhosts.MarkerNone:
			if _, seen := known.types[e.Key.Type()]; !seen {
				known.types[e.Key.Type()] = RevokedBy(entries, e.Key) == nil
			}
		}
	}
	for name, usable := range known.types {
		if !usable {
			delete(known.types, name)
		}
	}
	return known
}

// plainType returns the type of key in a known_hosts line for a signature or certificate algorithm.
func plainType(name string) string {
	switch name = alg.Plain(name); name {
	case ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSASHA512:
		return ssh.KeyAlgoRSA
	}
	return name
}
