// Package check decides, by the known keys of a host, whether to trust a key and which algorithms
// to offer, and records a new key as ssh does. The caller decides whether an unknown key is
// accepted.
package check

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
)

// Rules are the rules about certificates in which releases of ssh differ.
type Rules struct {
	// Patterns reports whether a principal may be a pattern, as it may since 10.3; nil is no.
	Patterns func() bool
	// Inside reports whether the key inside a certificate that is not accepted may be trusted by
	// itself: since 9.8 HostKeyAlgorithms must have its type. nil is yes.
	Inside func(keyType string) bool
}

// Key decides whether key may speak for host and port, by the rules of ssh
// with StrictHostKeyChecking yes (sshconnect.c:check_host_key):
//
//   - a revoked key, or a certificate of a revoked authority, never;
//   - a certificate of an authority that a matching @cert-authority line names,
//     if it is valid, for hosts, and for this host;
//   - a key, or the key inside a certificate, that a matching line holds;
//   - a host of which a line holds a key that cannot be decoded is not unknown: its
//     key is another one (ssh says so of the types that it knows);
//   - on another port than 22, also a key known for the host without a port; for
//     a certificate of a strange authority before the key inside is looked at.
//
// Everything else is an error, a *Verdict. For a HostKeyAlias pass the alias and port 0. The
// remote address is for the message only and may be nil: like ssh since 8.5 (CheckHostIP no) Key
// does not look it up.
func Key(x *index.Index, host string, port int, remote net.Addr, key ssh.PublicKey, rules Rules) error {
	o := offer{name: knownhosts.HostPort(host, port), host: wildcard.Lower(host), key: key, rules: rules}
	if remote != nil {
		o.remote = remote.String()
	}
	v := checkName(x, o)
	if v != nil && o.name != o.host && (v.Kind == Unknown || v.Kind == Changed && strange(x, o)) {
		v = checkPlainName(x, o, v)
	}
	if v == nil { // not a nil *Verdict in an error
		return nil
	}
	return v
}

// strange reports whether the key is a certificate of an authority that is not known for the name:
// ssh then asks for the name without the port before it checks the key inside.
func strange(x *index.Index, o offer) bool {
	cert, ok := o.key.(*ssh.Certificate)
	return ok && authority(x.Lookup(o.name, 0), cert) < 0
}

// checkPlainName decides by the name without the port, if the one with it is unknown. As in ssh,
// another key for the plain name, or a revocation of this one there, says nothing about the port.
func checkPlainName(x *index.Index, o offer, unknown *Verdict) *Verdict {
	o.name = o.host
	plain := checkName(x, o)
	if plain == nil {
		return nil
	}
	if plain.Kind == Revoked && unknown.Reason == "" {
		unknown.Reason = fmt.Sprintf("it is unknown, and %s:%d revokes it for the name without the port", plain.Lines[0].File, plain.Lines[0].Line)
	}
	if plain.Kind == Unknown && plain.CA && unknown.Kind == Unknown && !unknown.CA {
		unknown.CA, unknown.Reason = true, plain.Reason
	}
	return unknown
}

// offer is the key that a server presents.
type offer struct {
	name   string // as in a file
	host   string // without a port: a certificate must name it
	remote string
	key    ssh.PublicKey
	rules  Rules
}

// checkName decides whether an offered host key is right for one name; nil means that it is known
// and right.
func checkName(x *index.Index, o offer) *Verdict {
	entries, undecoded := x.Matching(o.name)
	if line := RevokedBy(entries, o.key); line != nil {
		return verdict(x, Revoked, o, knownOf(*line))
	}
	reason := ""
	if cert, ok := o.key.(*ssh.Certificate); ok {
		err := o.checkCertificate(entries, cert)
		if err == nil {
			return nil
		}
		reason = err.Error()
		o.key = cert.Key // ssh continues with the key inside
		if o.rules.Inside != nil && !o.rules.Inside(o.key.Type()) {
			v := unknown(x, o, entries, reason+", and HostKeyAlgorithms has no "+o.key.Type())
			v.CA = true
			return v
		}
	}
	return checkPlain(x, o, entries, undecoded, reason)
}

// checkPlain decides on a key that is not a certificate.
func checkPlain(x *index.Index, o offer, entries, undecoded []index.Entry, reason string) *Verdict {
	var old []Known
	for _, e := range slices.Concat(entries, undecoded) {
		if e.Marker != knownhosts.MarkerNone {
			continue
		}
		if e.Err == nil && sameKey(e.Key, o.key) {
			return nil
		}
		old = append(old, knownOf(e))
	}
	if len(old) == 0 {
		return unknown(x, o, slices.Concat(entries, undecoded), reason)
	}
	slices.SortStableFunc(old, func(a, b Known) int {
		return rank(a.Type == o.key.Type()) - rank(b.Type == o.key.Type())
	})
	return verdict(x, Changed, o, old...)
}

func verdict(x *index.Index, kind Kind, o offer, lines ...Known) *Verdict {
	return &Verdict{Kind: kind, Name: o.name, Remote: o.remote, New: knownhosts.Fingerprint(o.key), Lines: lines, Files: x.Files()}
}

func unknown(x *index.Index, o offer, entries []index.Entry, reason string) *Verdict {
	authority := slices.IndexFunc(entries, func(e index.Entry) bool { return e.Marker == knownhosts.MarkerCA })
	if authority >= 0 && reason == "" {
		reason = fmt.Sprintf("%s asks for a certificate of its authority", entries[authority].Where())
	}
	v := verdict(x, Unknown, o)
	v.Reason, v.CA, v.Err = reason, authority >= 0, errors.Join(x.Problems()...)
	return v
}

// checkCertificate verifies a host certificate against the authorities among entries
// (sshkey.c:sshkey_cert_check_host). One without principals is for no host, as for ssh since 10.3.
func (o *offer) checkCertificate(entries []index.Entry, cert *ssh.Certificate) error {
	if authority(entries, cert) < 0 {
		return fmt.Errorf("no @cert-authority line for the name holds the key of its certificate's authority, %s", knownhosts.Fingerprint(cert.SignatureKey))
	}
	if cert.Signature == nil || !slices.Contains(caSignatures(), cert.Signature.Format) {
		return errors.New("its certificate is signed with an algorithm that is not accepted")
	}
	if cert.CertType != ssh.HostCert {
		return errors.New("its certificate is not one of a host")
	}
	i := slices.IndexFunc(cert.ValidPrincipals, o.isPrincipal)
	if i < 0 {
		return fmt.Errorf("its certificate is not for this host: it names the principals %s", cmp.Or(strings.Join(cert.ValidPrincipals, ", "), "of no host (ssh-keygen -n)"))
	}
	if err := new(ssh.CertChecker).CheckCert(cert.ValidPrincipals[i], cert); err != nil {
		return fmt.Errorf("its certificate is not valid: %s", strings.TrimPrefix(err.Error(), "ssh: "))
	}
	return nil
}

// isPrincipal reports whether a principal of a certificate means the host.
func (o *offer) isPrincipal(name string) bool {
	return name == o.host || strings.ContainsAny(name, "*?") && wildcard.Match(o.host, name) && o.rules.Patterns != nil && o.rules.Patterns()
}

// authority returns the index of the line with the authority of a certificate, -1 for none.
func authority(entries []index.Entry, cert *ssh.Certificate) int {
	return slices.IndexFunc(entries, func(e index.Entry) bool {
		return e.Marker == knownhosts.MarkerCA && sameKey(e.Key, cert.SignatureKey)
	})
}

// caSignatures returns the algorithms with which an authority may sign (ssh_config(5)
// CASignatureAlgorithms); SHA-1 and DSA are not among them.
func caSignatures() []string {
	return []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
	}
}

// RevokedBy returns the line that revokes key: the key itself, the key inside a certificate, or the
// key of its authority.
func RevokedBy(entries []index.Entry, key ssh.PublicKey) *index.Entry {
	for i, e := range entries {
		if e.Marker != knownhosts.MarkerRevoked {
			continue
		}
		if sameKey(e.Key, key) {
			return &entries[i]
		}
		if cert, ok := key.(*ssh.Certificate); ok && (sameKey(e.Key, cert.Key) || sameKey(e.Key, cert.SignatureKey)) {
			return &entries[i]
		}
	}
	return nil
}

func sameKey(a, b ssh.PublicKey) bool { return bytes.Equal(a.Marshal(), b.Marshal()) }
