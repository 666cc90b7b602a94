package transport

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/crypto/chacha20"
	"golang.org/x/crypto/poly1305" //lint:ignore SA1019 the construction is OpenSSH's own, PROTOCOL.chacha20poly1305
	"golang.org/x/crypto/ssh"
)

// suite is a cipher, with its own authentication or a MAC.
type suite struct {
	name    string
	key, iv int // bytes
	make    func(key, iv []byte, by *authenticator) (both, error)
	withMAC bool
	limit   int64 // bytes under one key (RFC 4344 section 3.2, RFC 4253 section 9)
}

const (
	gib = 1 << 30
	tag = 16
)

type both = interface {
	sealer
	opener
}

var suites = []suite{
	{ssh.CipherAES128GCM, 16, 12, newGCM, false, 64 * gib},
	{ssh.CipherAES256GCM, 32, 12, newGCM, false, 64 * gib},
	{ssh.CipherChaCha20Poly1305, 64, 0, newChaCha, false, gib},
	{ssh.CipherAES128CTR, 16, 16, newCounter, true, 64 * gib},
	{ssh.CipherAES192CTR, 24, 16, newCounter, true, 64 * gib},
	{ssh.CipherAES256CTR, 32, 16, newCounter, true, 64 * gib},
}

// suiteNamed returns a known suite: the name was agreed on.
func suiteNamed(name string) suite {
	return suites[slices.IndexFunc(suites, func(s suite) bool { return s.name == name })]
}

// ErrTampered is a packet that was changed in transit, in ssh's words.
var ErrTampered = errors.New("ssh: message authentication code incorrect")

// gcm is AES in Galois/Counter Mode (RFC 5647).
type gcm struct {
	aead  cipher.AEAD
	nonce [12]byte
}

func newGCM(key, iv []byte, _ *authenticator) (both, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	g := &gcm{aead: aead}
	copy(g.nonce[:], iv)
	return g, nil
}

// step counts the invocation counter up (RFC 5647 section 7.1).
func (g *gcm) step() {
	n := binary.BigEndian.Uint64(g.nonce[4:])
	binary.BigEndian.PutUint64(g.nonce[4:], n+1)
}

func (g *gcm) seal(dst []byte, _ uint32, head, rest []byte) []byte {
	start := len(dst)
	dst = frame(dst, head, rest, aes.BlockSize, 0)
	length, body := dst[start:start+4], dst[start+4:]
	sealed := g.aead.Seal(body[:0], g.nonce[:], body, length)
	g.step()
	if len(dst)+tag <= cap(dst) {
		return dst[:len(dst)+tag]
	}
	return append(dst[:start+4], sealed...)
}

func (g *gcm) open(in *input, _ uint32) ([]byte, error) {
	packet, _, err := arrived(in, binary.BigEndian.Uint32, aes.BlockSize, 0, tag)
	if err != nil {
		return nil, err
	}
	clear, err := g.aead.Open(packet[4:4], g.nonce[:], packet[4:], packet[:4])
	if err != nil {
		return nil, ErrTampered
	}
	g.step()
	return unpad(clear)
}

// chacha is chacha20-poly1305@openssh.com: one key for the packets, one for their lengths.
type chacha struct{ body, length [32]byte }

func newChaCha(key, _ []byte, _ *authenticator) (both, error) {
	c := &chacha{}
	copy(c.body[:], key[:32])
	copy(c.length[:], key[32:])
	return c, nil
}

// streams returns the two key streams of a packet and its authentication key.
func (c *chacha) streams(seq uint32) (body, length *chacha20.Cipher, key *[32]byte) {
	var nonce [12]byte
	binary.BigEndian.PutUint32(nonce[8:], seq)
	body, _ = chacha20.NewUnauthenticatedCipher(c.body[:], nonce[:]) // fails on wrong lengths only
	length, _ = chacha20.NewUnauthenticatedCipher(c.length[:], nonce[:])
	key = new([32]byte)
	body.XORKeyStream(key[:], key[:])
	body.SetCounter(1)
	return body, length, key
}

func (c *chacha) seal(dst []byte, seq uint32, head, rest []byte) []byte {
	body, length, key := c.streams(seq)
	start := len(dst)
	dst = frame(dst, head, rest, plainBlock, 0)
	length.XORKeyStream(dst[start:start+4], dst[start:start+4])
	body.XORKeyStream(dst[start+4:], dst[start+4:])
	var mac [tag]byte
	poly1305.Sum(&mac, dst[start:], key)
	return append(dst, mac[:]...)
}

func (c *chacha) open(in *input, seq uint32) ([]byte, error) {
	body, length, key := c.streams(seq)
	packet, n, err := arrived(in, func(head []byte) uint32 {
		var clear [4]byte
		length.XORKeyStream(clear[:], head)
		return binary.BigEndian.Uint32(clear[:])
	}, plainBlock, 0, tag)
	if err != nil {
		return nil, err
	}
	var mac [tag]byte
	text := packet[:4+n]
	poly1305.Sum(&mac, text, key)
	if subtle.ConstantTimeCompare(mac[:], packet[4+n:]) != 1 {
		return nil, ErrTampered
	}
	body.XORKeyStream(text[4:], text[4:])
	return unpad(text[4:])
}
