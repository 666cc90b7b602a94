//go:build linux

package login

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"os"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/bench/loopback"
	"sshpace/internal/sys/safedir"
)

// keyTypes are the keys that logins are compared with, in both roles, by the name of their
// signatures.
var keyTypes = []struct {
	name string
	make func() (crypto.Signer, error)
}{
	{ssh.KeyAlgoED25519, func() (crypto.Signer, error) { _, k, err := ed25519.GenerateKey(rand.Reader); return k, err }},
	{ssh.KeyAlgoECDSA256, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }},
	{ssh.KeyAlgoECDSA384, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) }},
	{ssh.KeyAlgoECDSA521, func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) }},
	{ssh.KeyAlgoRSASHA512, func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, rsaBits) }},
}

// rsaBits is the default of ssh-keygen since 8.0.
const rsaBits = 3072

type keyPair struct {
	name   string // of its signatures
	file   string
	signer ssh.Signer
}

// line returns its public half as a line of authorized_keys.
func (k *keyPair) line() string { return string(ssh.MarshalAuthorizedKey(k.signer.PublicKey())) }

// makeKeys writes one key of each type, with a prefix to their files' names.
func makeKeys(dir *safedir.Workdir, prefix string) (all []*keyPair, err error) {
	for _, t := range keyTypes {
		k, err := t.make()
		if err != nil {
			return nil, err
		}
		pair, err := writeKey(dir, prefix+t.name, k)
		if err != nil {
			return nil, err
		}
		pair.name = t.name
		all = append(all, pair)
	}
	return all, nil
}

// writeKey writes both halves.
func writeKey(dir *safedir.Workdir, name string, k crypto.Signer) (*keyPair, error) {
	signer, err := loopback.WriteKey(dir, name, k)
	if err != nil {
		return nil, err
	}
	pair := &keyPair{file: dir.File(name), signer: signer}
	return pair, dir.WriteFile(name+".pub", []byte(pair.line()), 0o600)
}

// certify writes a certificate of a user's key next to it (file-cert.pub), where ssh finds it by
// itself.
func certify(k *keyPair, user string, authority ssh.Signer) error {
	cert := &ssh.Certificate{
		Key: k.signer.PublicKey(), CertType: ssh.UserCert, KeyId: "sshpace", ValidPrincipals: []string{user}, ValidBefore: ssh.CertTimeInfinity,
	}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		return err
	}
	return os.WriteFile(k.file+"-cert.pub", ssh.MarshalAuthorizedKey(cert), 0o600)
}
