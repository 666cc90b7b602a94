package oldserver

import (
	"bytes"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"math/big"
	"slices"

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

// KexInit returns the first message of a key exchange.
func (c *Conn) KexInit() []byte {
	ours := kexInit{
		Kex: []string{ssh.KeyExchangeCurve25519, "curve25519-sha256@libssh.org"}, HostKey: []string{c.HostKey.PublicKey().Type()}, CipherUp: c.Ciphers, CipherDown: c.Ciphers,
		MACUp: []string{c.MAC}, MACDown: []string{c.MAC}, CompressUp: []string{"none"}, CompressDn: []string{"none"},
	}
	_, _ = rand.Read(ours.Cookie[:]) // never fails
	return ssh.Marshal(&ours)
}

// Exchange reads the client's version, does curve25519-sha256 (RFC 8731) and changes to the new
// keys.
func (c *Conn) Exchange() error {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return err
	}
	theirVersion, ourInit := bytes.Clone(bytes.TrimRight(line, "\r\n")), c.KexInit()
	if err := c.Send(ourInit); err != nil {
		return err
	}
	theirInit, err := c.expect(msgKexInit)
	if err != nil {
		return err
	}
	p, err := c.expect(msgECDHInit)
	if err != nil {
		return err
	}
	var client kexInit
	var theirs struct {
		Point []byte `sshtype:"30"`
	}
	if err := errors.Join(ssh.Unmarshal(theirInit, &client), ssh.Unmarshal(p, &theirs)); err != nil {
		return err
	}
	public, err := ecdh.X25519().NewPublicKey(theirs.Point)
	if err != nil {
		return err
	}
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	shared, err := private.ECDH(public)
	if err != nil {
		return err
	}
	secret := ssh.Marshal(&struct{ K *big.Int }{new(big.Int).SetBytes(shared)})
	blob, point := c.HostKey.PublicKey().Marshal(), private.PublicKey().Bytes()
	h := sha256.New()
	for _, part := range [][]byte{theirVersion, []byte(c.Version), theirInit, ourInit, blob, theirs.Point, point} {
		h.Write(ssh.Marshal(&struct{ Part []byte }{part}))
	}
	h.Write(secret)
	c.session = h.Sum(nil)
	signature, err := c.HostKey.Sign(rand.Reader, c.session)
	if err != nil {
		return err
	}
	reply := struct {
		Key, Point, Signature []byte `sshtype:"31"`
	}{blob, point, ssh.Marshal(signature)}
	if err := errors.Join(c.Send(ssh.Marshal(&reply)), c.Send([]byte{msgNewKeys})); err != nil {
		return err
	}
	if _, err := c.expect(msgNewKeys); err != nil {
		return err
	}
	return c.change(&client, secret)
}

// change puts the new keys to use (RFC 4253 section 7.2).
func (c *Conn) change(client *kexInit, secret []byte) (err error) {
	protected := func(theirs []string, key, iv, mac byte, in bool) (protection, error) {
		derive := func(letter byte) []byte { // no key is longer than a hash
			sum := sha256.Sum256(bytes.Join([][]byte{secret, c.session, {letter}, c.session}, nil))
			return sum[:]
		}
		for _, name := range theirs {
			if slices.Contains(c.Ciphers, name) {
				return protections[name](derive(key)[:keySize], derive(iv), derive(mac), in)
			}
		}
		return nil, errors.New("no cipher in common")
	}
	if c.rx, err = protected(client.CipherUp, 'C', 'A', 'E', true); err == nil {
		c.tx, err = protected(client.CipherDown, 'D', 'B', 'F', false)
	}
	return err
}
