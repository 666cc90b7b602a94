package oldserver

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // that is what these clients have
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Message numbers (RFC 4250 section 4.1).
const (
	msgIgnore        = 2
	msgUnimplemented = 3
	msgDebug         = 4
	msgServiceReq    = 5
	msgServiceAccept = 6
	msgKexInit       = 20
	msgNewKeys       = 21
	msgECDHInit      = 30
	msgECDHReply     = 31
)

const version = "SSH-2.0-sshpace-old"

// kexInit is SSH_MSG_KEXINIT (RFC 4253 section 7.1).
type kexInit struct {
	Cookie                 [16]byte `sshtype:"20"`
	Kex, HostKey           []string
	CipherUp, CipherDown   []string
	MACUp, MACDown         []string
	CompressUp, CompressDn []string
	LanguageUp, LanguageDn []string
	FirstFollows           bool
	Reserved               uint32
}

// handshake exchanges versions and keys; session is the session identifier.
func handshake(raw net.Conn, key ssh.Signer) (c *conn, session []byte, err error) {
	c = &conn{net: raw, in: bufio.NewReader(raw)}
	if _, err := fmt.Fprintf(raw, "%s\r\n", version); err != nil {
		return nil, nil, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, nil, err
	}
	theirs := strings.TrimRight(string(line), "\r\n")
	ours := kexInit{
		Kex: []string{ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org"}, HostKey: []string{key.PublicKey().Type()},
		MACUp: []string{ssh.HMACSHA1}, MACDown: []string{ssh.HMACSHA1}, CompressUp: []string{"none"}, CompressDn: []string{"none"},
	}
	for _, one := range ciphers {
		ours.CipherUp, ours.CipherDown = append(ours.CipherUp, one.name), append(ours.CipherDown, one.name)
	}
	_, _ = rand.Read(ours.Cookie[:]) // never fails
	ourInit := ssh.Marshal(&ours)
	if err := c.write(ourInit); err != nil {
		return nil, nil, err
	}
	theirInit, err := c.expect(msgKexInit)
	if err != nil {
		return nil, nil, err
	}
	var client kexInit
	if err := ssh.Unmarshal(theirInit, &client); err != nil {
		return nil, nil, err
	}
	var lists [][]byte
	for _, part := range [][]byte{[]byte(theirs), []byte(version), theirInit, ourInit} {
		lists = append(lists, slices.Clone(part))
	}
	session, err = c.exchange(&client, lists, key)
	return c, session, err
}

// exchange is curve25519-sha256 (RFC 8731) and the change to the new keys.
func (c *conn) exchange(client *kexInit, transcript [][]byte, key ssh.Signer) (session []byte, err error) {
	p, err := c.expect(msgECDHInit)
	if err != nil {
		return nil, err
	}
	var theirs struct {
		Point []byte `sshtype:"30"`
	}
	if err := ssh.Unmarshal(p, &theirs); err != nil {
		return nil, err
	}
	public, err := ecdh.X25519().NewPublicKey(theirs.Point)
	if err != nil {
		return nil, err
	}
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	shared, err := private.ECDH(public)
	if err != nil {
		return nil, err
	}
	secret := ssh.Marshal(&struct{ K *big.Int }{new(big.Int).SetBytes(shared)})
	blob, point := key.PublicKey().Marshal(), private.PublicKey().Bytes()
	h := sha256.New()
	for _, part := range append(transcript, blob, theirs.Point, point) {
		h.Write(ssh.Marshal(&struct{ Part []byte }{part}))
	}
	h.Write(secret)
	session = h.Sum(nil)
	signature, err := key.Sign(rand.Reader, session)
	if err != nil {
		return nil, err
	}
	reply := struct {
		Key, Point, Signature []byte `sshtype:"31"`
	}{blob, point, ssh.Marshal(signature)}
	if err := errors.Join(c.write(ssh.Marshal(&reply)), c.write([]byte{msgNewKeys})); err != nil {
		return nil, err
	}
	if _, err := c.expect(msgNewKeys); err != nil {
		return nil, err
	}
	return session, c.change(client, secret, session)
}

// change puts the new keys to use (RFC 4253 section 7.2).
func (c *conn) change(client *kexInit, secret, session []byte) error {
	derive := func(letter byte, n int) []byte {
		sum := sha256.Sum256(bytes.Join([][]byte{secret, session, {letter}, session}, nil))
		return sum[:n] // no key is longer than a hash
	}
	up, err := chosen(client.CipherUp, derive('C', keySize))
	if err != nil {
		return err
	}
	down, err := chosen(client.CipherDown, derive('D', keySize))
	if err != nil {
		return err
	}
	c.rx.mode, c.rx.mac = cipher.NewCBCDecrypter(up, derive('A', block)), hmac.New(sha1.New, derive('E', macSize))
	c.tx.mode, c.tx.mac = cipher.NewCBCEncrypter(down, derive('B', block)), hmac.New(sha1.New, derive('F', macSize))
	return nil
}

// chosen is the first of the client's ciphers that is ours.
func chosen(theirs []string, key []byte) (cipher.Block, error) {
	for _, name := range theirs {
		for _, one := range ciphers {
			if one.name == name {
				return one.make(key)
			}
		}
	}
	return nil, errors.New("no cipher in common")
}
