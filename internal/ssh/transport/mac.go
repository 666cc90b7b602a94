package transport

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	_ "crypto/sha1" // for crypto.Hash
	"crypto/subtle"
	"encoding/binary"
	"hash"
	"slices"

	"golang.org/x/crypto/ssh"
)

// mac is a message authentication code (RFC 4253 section 6.4, RFC 6668).
type mac struct {
	name   string
	hash   crypto.Hash
	sealed bool // it covers the encrypted packet (OpenSSH, PROTOCOL section 1.5), not the plain one
}

var macs = []mac{
	{ssh.HMACSHA256ETM, crypto.SHA256, true},
	{ssh.HMACSHA512ETM, crypto.SHA512, true},
	{ssh.HMACSHA256, crypto.SHA256, false},
	{ssh.HMACSHA512, crypto.SHA512, false},
	{ssh.HMACSHA1, crypto.SHA1, false},
}

// macNamed returns a known MAC: the name was agreed on.
func macNamed(name string) mac {
	return macs[slices.IndexFunc(macs, func(m mac) bool { return m.name == name })]
}

// authenticator is a mac with its key.
type authenticator struct {
	hash.Hash
	sealed bool
}

func (m mac) keyed(key []byte) *authenticator {
	return &authenticator{hmac.New(m.hash.New, key), m.sealed}
}

// of returns the code of a packet.
func (a *authenticator) of(seq uint32, packet []byte) []byte {
	a.Reset()
	a.Write(binary.BigEndian.AppendUint32(nil, seq))
	a.Write(packet)
	return a.Sum(nil)
}

// counter is AES in counter mode (RFC 4344 section 4) with a MAC.
type counter struct {
	cipher.Stream
	by *authenticator
}

func newCounter(key, iv []byte, by *authenticator) (both, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return &counter{cipher.NewCTR(block, iv), by}, nil
}

func (c *counter) seal(dst []byte, seq uint32, head, rest []byte) []byte {
	start := len(dst)
	if c.by.sealed {
		dst = frame(dst, head, rest, aes.BlockSize, 0)
		c.XORKeyStream(dst[start+4:], dst[start+4:])
		return append(dst, c.by.of(seq, dst[start:])...)
	}
	dst = frame(dst, head, rest, aes.BlockSize, 4)
	code := c.by.of(seq, dst[start:])
	c.XORKeyStream(dst[start:], dst[start:])
	return append(dst, code...)
}

func (c *counter) open(in *input, seq uint32) ([]byte, error) {
	counted, length := uint32(0), binary.BigEndian.Uint32
	if !c.by.sealed { // the length is enciphered, too
		counted, length = 4, func(head []byte) uint32 { c.XORKeyStream(head, head); return binary.BigEndian.Uint32(head) }
	}
	packet, n, err := arrived(in, length, aes.BlockSize, counted, c.by.Size())
	if err != nil {
		return nil, err
	}
	text, code := packet[:4+n], packet[4+n:]
	if !c.by.sealed {
		c.XORKeyStream(text[4:], text[4:])
	}
	if subtle.ConstantTimeCompare(c.by.of(seq, text), code) != 1 {
		return nil, ErrTampered
	}
	if c.by.sealed {
		c.XORKeyStream(text[4:], text[4:])
	}
	return unpad(text[4:])
}
