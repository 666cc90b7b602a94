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

// method is a key exchange of the form "public value there, public value back"
// (RFC 5656 section 4, RFC 8731, draft-ietf-sshm-mlkem-hybrid-kex).
type method struct {
	name  string
	curve ecdh.Curve
	hash  crypto.Hash
	mlkem bool
}

var methods = []method{
	{ssh.KeyExchangeMLKEM768X25519, ecdh.X25519(), crypto.SHA256, true},
	{ssh.KeyExchangeCurve25519, ecdh.X25519(), crypto.SHA256, false},
	{"curve25519-sha256@libssh.org", ecdh.X25519(), crypto.SHA256, false},
	{ssh.KeyExchangeECDHP256, ecdh.P256(), crypto.SHA256, false},
	{ssh.KeyExchangeECDHP384, ecdh.P384(), crypto.SHA384, false},
	{ssh.KeyExchangeECDHP521, ecdh.P521(), crypto.SHA512, false},
}

func methodNamed(name string) method {
	i := slices.IndexFunc(methods, func(m method) bool { return m.name == name })
	return methods[i] // negotiated, so it is there
}

// offer is our half of a key exchange.
type offer struct {
	method
	public  []byte
	private *ecdh.PrivateKey
	kem     *mlkem.DecapsulationKey768
}

func (m method) offer() (*offer, error) {
	private, err := m.curve.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	o := &offer{method: m, private: private, public: private.PublicKey().Bytes()}
	if !m.mlkem {
		return o, nil
	}
	if o.kem, err = mlkem.GenerateKey768(); err != nil {
		return nil, err
	}
	o.public = append(o.kem.EncapsulationKey().Bytes(), o.public...)
	return o, nil
}

var errPublicValue = errors.New("ssh: the server's public value is not valid")

// secret is the shared secret, encoded as the exchange hash wants it.
func (o *offer) secret(theirs []byte) ([]byte, error) {
	var kem []byte
	if o.mlkem {
		if len(theirs) < mlkem.CiphertextSize768 {
			return nil, errPublicValue
		}
		var err error
		if kem, err = o.kem.Decapsulate(theirs[:mlkem.CiphertextSize768]); err != nil {
			return nil, errPublicValue
		}
		theirs = theirs[mlkem.CiphertextSize768:]
	}
	public, err := o.curve.NewPublicKey(theirs)
	if err != nil {
		return nil, errPublicValue
	}
	shared, err := o.private.ECDH(public) // refuses low order points
	if err != nil {
		return nil, errPublicValue
	}
	if !o.mlkem {
		return mpint(shared), nil
	}
	sum := sha256.Sum256(append(kem, shared...))
	return channel.AppendText(nil, sum[:]), nil
}

// mpint encodes an unsigned number (RFC 4251 section 5).
func mpint(b []byte) []byte {
	for len(b) > 0 && b[0] == 0 {
		b = b[1:]
	}
	if len(b) > 0 && b[0]&0x80 != 0 {
		b = append([]byte{0}, b...)
	}
	return channel.AppendText(nil, b)
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

// cipher is the cipher of one direction.
func (k *keys) cipher(s suite, iv, key byte) (both, error) {
	return s.make(k.derive(key, s.key), k.derive(iv, s.iv))
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
