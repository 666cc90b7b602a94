package knownhosts

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"strings"

	"sshpace/internal/base/wildcard"
)

// hashedName is the host field of a hashed line, "|1|salt|hash": the HMAC-SHA1 of the name under
// its own salt (hostfile.c:host_hash).
type hashedName struct {
	salt, sum [sha1.Size]byte
}

const hashMagic = "|1|"

var errBadHash = errors.New("the hashed host name is damaged (it must be |1|salt|hash)")

// parseHashedName decodes a host field that starts with "|".
func parseHashedName(field string) (*hashedName, error) {
	rest, ok := strings.CutPrefix(field, hashMagic)
	if !ok {
		return nil, errBadHash
	}
	salt, sum, _ := strings.Cut(rest, "|")
	h := new(hashedName)
	if !decode20(&h.salt, salt) || !decode20(&h.sum, sum) {
		return nil, errBadHash
	}
	return h, nil
}

// decode20 decodes the base64 of exactly 20 bytes.
func decode20(dst *[sha1.Size]byte, text string) bool {
	if len(text) != base64.StdEncoding.EncodedLen(sha1.Size) {
		return false
	}
	var buf [21]byte // 28 characters decode into at most 21 bytes
	n, err := base64.StdEncoding.Strict().Decode(buf[:], []byte(text))
	copy(dst[:], buf[:])
	return err == nil && n == sha1.Size
}

// maxQuickName is the length up to which matches needs no allocation; a DNS name has at most 253
// bytes.
const maxQuickName = 264

// matches reports whether the line belongs to a lower-case name. The two hashes of HMAC (RFC 2104)
// are computed over buffers on the stack, since hmac.New costs more than the hashing.
func (h *hashedName) matches(name string) bool {
	if len(name) > maxQuickName {
		return h.matchAny([][]byte{[]byte(name)}) == 0
	}
	var inner [sha1.BlockSize + maxQuickName]byte
	var outer [sha1.BlockSize + sha1.Size]byte
	for i := range sha1.BlockSize {
		inner[i], outer[i] = 0x36, 0x5c
	}
	for i, c := range h.salt {
		inner[i] ^= c
		outer[i] ^= c
	}
	n := copy(inner[sha1.BlockSize:], name)
	sum := sha1.Sum(inner[:sha1.BlockSize+n])
	copy(outer[sha1.BlockSize:], sum[:])
	return sha1.Sum(outer[:]) == h.sum
}

// matchAny is matches for many names: it returns the index of the one that the line belongs to, or
// -1. It processes the salt once, which saves 40 % per name.
func (h *hashedName) matchAny(names [][]byte) int {
	mac := hmac.New(sha1.New, h.salt[:])
	var sum [sha1.Size]byte
	for i, name := range names {
		mac.Reset()
		mac.Write(name)
		if mac.Sum(sum[:0]); sum == h.sum {
			return i
		}
	}
	return -1
}

// HashName returns the hashed form of a name under a fresh random salt, as ssh writes it under
// HashKnownHosts yes.
func HashName(name string) string {
	h := new(hashedName)
	rand.Read(h.salt[:]) // never fails: it ends the program instead
	mac := hmac.New(sha1.New, h.salt[:])
	mac.Write([]byte(wildcard.Lower(name)))
	mac.Sum(h.sum[:0])
	encode := base64.StdEncoding.EncodeToString
	return hashMagic + encode(h.salt[:]) + "|" + encode(h.sum[:])
}
