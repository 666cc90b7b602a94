package knownhosts

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Check decides whether key may speak for host and port, by the rules of ssh
// with StrictHostKeyChecking yes (sshconnect.c:check_host_key):
//
//   - a revoked key, or a certificate of a revoked authority, never;
//   - a certificate of an authority that a matching @cert-authority line names,
//     if it is valid, for hosts, and for this host;
//   - a key, or the key inside a certificate, that a matching line holds;
//   - on another port than 22, also a key known for the host without a port.
//
// Everything else is an error, a *Verdict. For a HostKeyAlias pass the alias and port 0. The remote address is for the
// message only and may be nil: like ssh since 8.5 (CheckHostIP no) Check does
// not look it up.
func (x *Index) Check(host string, port int, remote net.Addr, key ssh.PublicKey) error {
	o := offer{name: HostPort(host, port), host: lower(host), key: key}
	if remote != nil {
		o.remote = remote.String()
	}
	v := x.check(o)
	if v != nil && v.Kind == Unknown && o.name != o.host {
		v = x.checkPlainName(o, v)
	}
	if v == nil { // not a nil *Verdict in an error
		return nil
	}
	return v
}

// checkPlainName decides by the name without the port, where the one with it is
// unknown. As in ssh, another key for the plain name says nothing about the
// port.
func (x *Index) checkPlainName(o offer, unknown *Verdict) *Verdict {
	o.name = o.host
	plain := x.check(o)
	if plain == nil || plain.Kind == Revoked {
		return plain
	}
	if plain.Kind == Unknown && plain.CA && !unknown.CA {
		unknown.CA, unknown.Reason = true, plain.Reason
	}
	return unknown
}

// offer is what a server presents.
type offer struct {
	name   string // as it stands in a file
	host   string // without a port: what a certificate must name
	remote string
	key    ssh.PublicKey
}

// check decides on one name.
func (x *Index) check(o offer) *Verdict {
	entries := x.Lookup(o.name, 0)
	if line := revokedBy(entries, o.key); line != nil {
		return x.verdict(Revoked, o, knownOf(*line))
	}
	reason := ""
	if cert, ok := o.key.(*ssh.Certificate); ok {
		err := checkCertificate(entries, o.host, cert)
		if err == nil {
			return nil
		}
		reason = err.Error()
		o.key = cert.Key // ssh goes on with the key inside
	}
	return x.checkPlain(o, entries, reason)
}

// checkPlain decides on a key that is no certificate.
func (x *Index) checkPlain(o offer, entries []Entry, reason string) *Verdict {
	var old []Known
	for _, e := range entries {
		if e.Marker != MarkerNone {
			continue
		}
		if sameKey(e.Key, o.key) {
			return nil
		}
		old = append(old, knownOf(e))
	}
	if len(old) == 0 {
		return x.unknown(o, entries, reason)
	}
	slices.SortStableFunc(old, func(a, b Known) int {
		return rank(a.Type == o.key.Type()) - rank(b.Type == o.key.Type())
	})
	return x.verdict(Changed, o, old...)
}

func (x *Index) verdict(kind Kind, o offer, lines ...Known) *Verdict {
	return &Verdict{Kind: kind, Name: o.name, Remote: o.remote, New: fingerprint(o.key), Lines: lines, Files: x.Files()}
}

func (x *Index) unknown(o offer, entries []Entry, reason string) *Verdict {
	authority := slices.IndexFunc(entries, func(e Entry) bool { return e.Marker == MarkerCA })
	if authority >= 0 && reason == "" {
		reason = fmt.Sprintf("%s asks for a certificate of its authority", entries[authority].Where())
	}
	v := x.verdict(Unknown, o)
	v.Reason, v.CA, v.Err = reason, authority >= 0, errors.Join(x.Problems()...)
	return v
}

// checkCertificate verifies a host certificate against the authorities among
// entries.
func checkCertificate(entries []Entry, host string, cert *ssh.Certificate) error {
	authority := slices.IndexFunc(entries, func(e Entry) bool {
		return e.Marker == MarkerCA && sameKey(e.Key, cert.SignatureKey)
	})
	if authority < 0 {
		return fmt.Errorf("no @cert-authority line for the name holds the key of its certificate's authority, %s", fingerprint(cert.SignatureKey))
	}
	if cert.Signature == nil || !slices.Contains(caSignatures(), cert.Signature.Format) {
		return errors.New("its certificate is signed with an algorithm that is not accepted")
	}
	checker := ssh.CertChecker{IsHostAuthority: func(ssh.PublicKey, string) bool { return true }} // just found
	if err := checker.CheckHostKey(net.JoinHostPort(host, "22"), nil, cert); err != nil {
		return fmt.Errorf("its certificate is not valid: %s", strings.TrimPrefix(err.Error(), "ssh: "))
	}
	return nil
}

// caSignatures are the algorithms with which an authority may sign
// (ssh_config(5) CASignatureAlgorithms); SHA-1 and DSA are not among them.
func caSignatures() []string {
	return []string{
		ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521,
		ssh.KeyAlgoSKED25519, ssh.KeyAlgoSKECDSA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
	}
}

// revokedBy returns the line that revokes key: the key itself, the key inside a
// certificate, or the key of its authority.
func revokedBy(entries []Entry, key ssh.PublicKey) *Entry {
	for i, e := range entries {
		if e.Marker != MarkerRevoked {
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
