package transport

import (
	"crypto"
	"crypto/ecdh"
	"crypto/mlkem"
	"crypto/rand"
	"crypto/sha256"
	_ "crypto/sha512" // for crypto.Hash
	"encoding/binary"
	"errors"
	"hash"
	"slices"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

// method is a key exchange of the form "public value there, public value back" (RFC 5656 section 4,
// RFC 8731, draft-ietf-sshm-mlkem-hybrid-kex, RFC 4253 section 8).
type method struct {
	name string
	make func() (half, error) // nil: the server chooses the group
	hash crypto.Hash
}

var methods = []method{
	{ssh.KeyExchangeMLKEM768X25519, newHybrid, crypto.SHA256},
	{ssh.KeyExchangeCurve25519, onCurve(ecdh.X25519()), crypto.SHA256},
	{"curve25519-sha256@libssh.org", onCurve(ecdh.X25519()), crypto.SHA256},
	{ssh.KeyExchangeECDHP256, onCurve(ecdh.P256()), crypto.SHA256},
	{ssh.KeyExchangeECDHP384, onCurve(ecdh.P384()), crypto.SHA384},
	{ssh.KeyExchangeECDHP521, onCurve(ecdh.P521()), crypto.SHA512},
	{ssh.KeyExchangeDH14SHA256, inGroup(prime14), crypto.SHA256},
	{ssh.KeyExchangeDH16SHA512, inGroup(prime16), crypto.SHA512},
	{ssh.KeyExchangeDHGEXSHA256, nil, crypto.SHA256},
	{ssh.InsecureKeyExchangeDH14SHA1, inGroup(prime14), crypto.SHA1},
	{ssh.InsecureKeyExchangeDHGEXSHA1, nil, crypto.SHA1},
}

// methodNamed returns a known method: the name was agreed on.
func methodNamed(name string) method {
	return methods[slices.IndexFunc(methods, func(m method) bool { return m.name == name })]
}

// half is our half of a key exchange.
type half interface {
	// public is sent to the server.
	public() []byte
	// secret is the shared secret, encoded as the exchange hash wants it.
	secret(theirs []byte) ([]byte, error)
}

var errPublicValue = errors.New("ssh: the server's public value is not valid")

// elliptic is our half on an elliptic curve.
type elliptic struct{ private *ecdh.PrivateKey }

func newElliptic(curve ecdh.Curve) (*elliptic, error) {
	private, err := curve.GenerateKey(rand.Reader)
	return &elliptic{private}, err
}

func onCurve(curve ecdh.Curve) func() (half, error) {
	return func() (half, error) { return newElliptic(curve) }
}

func (e *elliptic) public() []byte { return e.private.PublicKey().Bytes() }

func (e *elliptic) shared(theirs []byte) ([]byte, error) {
	public, err := e.private.Curve().NewPublicKey(theirs)
	if err != nil {
		return nil, errPublicValue
	}
	shared, err := e.private.ECDH(public) // refuses low order points
	if err != nil {
		return nil, errPublicValue
	}
	return shared, nil
}

func (e *elliptic) secret(theirs []byte) ([]byte, error) {
	shared, err := e.shared(theirs)
	return channel.AppendText(nil, unsigned(shared)), err
}

// hybrid is our half of ML-KEM together with a curve.
type hybrid struct {
	*elliptic
	kem *mlkem.DecapsulationKey768
}

func newHybrid() (half, error) {
	beside, err := newElliptic(ecdh.X25519())
	if err != nil {
		return nil, err
	}
	kem, err := mlkem.GenerateKey768()
	return &hybrid{beside, kem}, err
}

func (h *hybrid) public() []byte {
	return append(h.kem.EncapsulationKey().Bytes(), h.elliptic.public()...)
}

func (h *hybrid) secret(theirs []byte) ([]byte, error) {
	if len(theirs) < mlkem.CiphertextSize768 {
		return nil, errPublicValue
	}
	kem, err := h.kem.Decapsulate(theirs[:mlkem.CiphertextSize768])
	if err != nil {
		return nil, errPublicValue
	}
	shared, err := h.shared(theirs[mlkem.CiphertextSize768:])
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append(kem, shared...))
	return channel.AppendText(nil, sum[:]), nil
}

// unsigned encodes an unsigned number (RFC 4251 section 5), without its length.
func unsigned(b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) > 0 && b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	return b
}

// keys derives key material (RFC 4253 section 7.2).
type keys struct {
	hash             crypto.Hash
	secret, exchange []byte
	session          []byte
}

func (k *keys) derive(letter byte, n int) []byte {
	var out []byte
	h := k.hash.New()
	for len(out) < n {
		h.Reset()
		h.Write(k.secret)
		h.Write(k.exchange)
		if len(out) == 0 {
			h.Write([]byte{letter})
			h.Write(k.session)
		} else {
			h.Write(out)
		}
		out = h.Sum(out)
	}
	return out[:n]
}

// cipher returns the protection of one direction; letters select its keys.
func (k *keys) cipher(w direction, iv, key, code byte) (both, error) {
	s := suiteNamed(w.cipher)
	var by *authenticator
	if s.withMAC {
		m := macNamed(w.mac)
		by = m.keyed(k.derive(code, m.hash.Size()))
	}
	return s.make(k.derive(key, s.key), k.derive(iv, s.iv), by)
}

// hashed adds strings to an exchange hash.
func hashed(h hash.Hash, parts ...[]byte) {
	for _, p := range parts {
		var n [4]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(p)))
		h.Write(n[:])
		h.Write(p)
	}
}
