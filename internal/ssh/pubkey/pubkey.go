// Package pubkey reads public keys: those of golang.org/x/crypto/ssh, and a composite of OpenSSH.
package pubkey

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha512"
	"errors"
	"fmt"

	"filippo.io/mldsa"
	"golang.org/x/crypto/ssh"
)

// MLDSA44Ed25519 is a type of key, and its signature algorithm, of OpenSSH 10.4 and later. A
// signature holds one of each kind (draft-miller-sshm-mldsa44-ed25519-composite-sigs-00).
const MLDSA44Ed25519 = "ssh-mldsa44-ed25519@openssh.com"

// Algorithms returns the algorithms of host keys that can be verified, without insecure ones.
func Algorithms() []string { return append(ssh.SupportedAlgorithms().HostKeys, MLDSA44Ed25519) }

// Parse reads a key in wire format (RFC 4253 section 6.6).
func Parse(blob []byte) (ssh.PublicKey, error) {
	var fields struct {
		Type string
		Rest []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(blob, &fields); err != nil || fields.Type != MLDSA44Ed25519 {
		return ssh.ParsePublicKey(blob)
	}
	var key struct{ Both []byte }
	if err := ssh.Unmarshal(fields.Rest, &key); err != nil {
		return nil, err
	}
	if len(key.Both) != mldsa.MLDSA44PublicKeySize+ed25519.PublicKeySize {
		return nil, errors.New("ssh: a composite key of a wrong length")
	}
	pq, err := mldsa.NewPublicKey(mldsa.MLDSA44(), key.Both[:mldsa.MLDSA44PublicKeySize])
	return &composite{bytes.Clone(blob), pq, ed25519.PublicKey(key.Both[mldsa.MLDSA44PublicKeySize:])}, err
}

// composite is a key of both kinds.
type composite struct {
	blob []byte
	pq   *mldsa.PublicKey
	ed   ed25519.PublicKey
}

func (c *composite) Type() string    { return MLDSA44Ed25519 }
func (c *composite) Marshal() []byte { return bytes.Clone(c.blob) }

// Verify checks both signatures of data (draft-ietf-lamps-pq-composite-sigs-18).
func (c *composite) Verify(data []byte, sig *ssh.Signature) error {
	const prefix, label = "CompositeAlgorithmSignatures2025", "COMPSIG-MLDSA44-Ed25519-SHA512"
	if sig.Format != c.Type() || len(sig.Blob) != mldsa.MLDSA44SignatureSize+ed25519.SignatureSize {
		return fmt.Errorf("ssh: a signature of type %q with %d bytes for a key of type %s", sig.Format, len(sig.Blob), c.Type())
	}
	sum := sha512.Sum512(data)
	message := append([]byte(prefix+label+"\x00"), sum[:]...) // without a context
	pq, ed := sig.Blob[:mldsa.MLDSA44SignatureSize], sig.Blob[mldsa.MLDSA44SignatureSize:]
	if err := mldsa.Verify(c.pq, message, pq, &mldsa.Options{Context: label}); err != nil {
		return err
	}
	if !ed25519.Verify(c.ed, message, ed) {
		return errors.New("ssh: signature did not verify")
	}
	return nil
}
