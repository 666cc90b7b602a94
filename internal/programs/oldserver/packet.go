package oldserver

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // these clients have the same
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/blowfish" //lint:ignore SA1019 to measure it again
	"golang.org/x/crypto/cast5"    //lint:ignore SA1019 likewise
	"golang.org/x/crypto/ssh"
)

// protection is a cipher and MAC in one direction of the binary packet protocol (RFC 4253 section
// 6).
type protection interface {
	// head is how many bytes contain the length of a packet, once begin has made them readable, and
	// tail is how many follow it.
	head() int
	begin(head []byte)
	tail() int
	// open decrypts and verifies the rest of a packet after its length.
	open(seq uint32, packet, tail []byte) ([]byte, error)
	// seal returns a packet as it is sent, whose length, without its first bytes, is a multiple of
	// a block.
	seal(seq uint32, packet []byte) []byte
	block() (size, uncounted int)
}

// protections by the names of ciphers: old ones of 64-bit blocks in CBC mode, with hmac-sha1; and
// one that everybody has, for tests.
var protections = map[string]func(key, iv, mac []byte, in bool) (protection, error){
	"blowfish-cbc": func(key, iv, mac []byte, in bool) (protection, error) {
		c, err := blowfish.NewCipher(key)
		return newCBC(c, iv, mac, in), err
	},
	"cast128-cbc": func(key, iv, mac []byte, in bool) (protection, error) {
		c, err := cast5.NewCipher(key)
		return newCBC(c, iv, mac, in), err
	},
	ssh.CipherAES128GCM: func(key, iv, _ []byte, _ bool) (protection, error) {
		c, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(c)
		return &gcm{aead, iv[:12]}, err
	},
}

const (
	block     = 8
	keySize   = 16
	maxPacket = 256 << 10
)

// plain sends packets unprotected.
type plain struct{}

func (plain) head() int                                       { return 4 }
func (plain) begin([]byte)                                    {}
func (plain) tail() int                                       { return 0 }
func (plain) open(_ uint32, packet, _ []byte) ([]byte, error) { return packet[4:], nil }
func (plain) seal(_ uint32, packet []byte) []byte             { return packet }
func (plain) block() (size, uncounted int)                    { return block, 0 }

// cbc encrypts all of a packet, followed by a MAC of the plaintext.
type cbc struct {
	mode cipher.BlockMode
	mac  hash.Hash
}

func newCBC(c cipher.Block, iv, mac []byte, in bool) *cbc {
	mode := cipher.NewCBCEncrypter
	if in {
		mode = cipher.NewCBCDecrypter
	}
	return &cbc{mode(c, iv[:block]), hmac.New(sha1.New, mac[:sha1.Size])}
}

func (c *cbc) sum(seq uint32, packet []byte) []byte {
	c.mac.Reset()
	c.mac.Write(binary.BigEndian.AppendUint32(nil, seq))
	c.mac.Write(packet)
	return c.mac.Sum(nil)
}

func (c *cbc) head() int                    { return block }
func (c *cbc) begin(head []byte)            { c.mode.CryptBlocks(head, head) }
func (c *cbc) tail() int                    { return sha1.Size }
func (c *cbc) block() (size, uncounted int) { return block, 0 }

func (c *cbc) open(seq uint32, packet, tail []byte) ([]byte, error) {
	c.mode.CryptBlocks(packet[block:], packet[block:])
	if !hmac.Equal(tail, c.sum(seq, packet)) {
		return nil, errPacket
	}
	return packet[4:], nil
}

func (c *cbc) seal(seq uint32, packet []byte) []byte {
	mac := c.sum(seq, packet)
	c.mode.CryptBlocks(packet, packet)
	return append(packet, mac...)
}

// gcm is aes128-gcm@openssh.com (RFC 5647), which leaves the length in the clear.
type gcm struct {
	aead  cipher.AEAD
	nonce []byte
}

func (*gcm) head() int                    { return 4 }
func (*gcm) begin([]byte)                 {}
func (g *gcm) tail() int                  { return g.aead.Overhead() }
func (*gcm) block() (size, uncounted int) { return aes.BlockSize, 4 }

func (g *gcm) open(_ uint32, packet, tail []byte) ([]byte, error) {
	defer g.step()
	return g.aead.Open(nil, g.nonce, append(packet[4:len(packet):len(packet)], tail...), packet[:4])
}

func (g *gcm) seal(_ uint32, packet []byte) []byte {
	defer g.step()
	return append(packet[:4:4], g.aead.Seal(nil, g.nonce, packet[4:], packet[:4])...)
}

func (g *gcm) step() {
	counter := g.nonce[4:]
	binary.BigEndian.PutUint64(counter, binary.BigEndian.Uint64(counter)+1)
}

// Conn is the server's side of a connection, with one cipher of several that its client can choose.
type Conn struct {
	net.Conn
	Version string
	HostKey ssh.Signer
	Ciphers []string
	MAC     string

	in      *bufio.Reader
	session []byte // its identifier
	rx      protection
	rxSeq   uint32

	mu    sync.Mutex // guards the fields below
	tx    protection
	txSeq uint32
}

// Begin sends the version.
func (c *Conn) Begin() error {
	c.in, c.rx, c.tx = bufio.NewReader(c.Conn), plain{}, plain{}
	_, err := io.WriteString(c.Conn, c.Version+"\r\n")
	return err
}

var errPacket = errors.New("a packet is of a wrong length, or was changed on its way")

// Receive returns the payload of the next packet.
func (c *Conn) Receive() ([]byte, error) {
	head := make([]byte, c.rx.head())
	if _, err := io.ReadFull(c.in, head); err != nil {
		return nil, err
	}
	c.rx.begin(head)
	n := int(binary.BigEndian.Uint32(head))
	if size, uncounted := c.rx.block(); n > maxPacket || n < size || (4-uncounted+n)%size != 0 {
		return nil, errPacket
	}
	packet := make([]byte, 4+n+c.rx.tail())
	copy(packet, head)
	if _, err := io.ReadFull(c.in, packet[len(head):]); err != nil {
		return nil, err
	}
	body, err := c.rx.open(c.rxSeq, packet[:4+n], packet[4+n:])
	if err != nil {
		return nil, err
	}
	c.rxSeq++
	padding := int(body[0])
	if padding+2 > n {
		return nil, errPacket
	}
	return body[1 : n-padding], nil
}

// Send sends a payload.
func (c *Conn) Send(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, uncounted := c.tx.block()
	padding := 2*size - (5-uncounted+len(payload))%size
	packet := make([]byte, 5+len(payload)+padding)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-4))
	packet[4] = byte(padding)
	copy(packet[5:], payload)
	_, _ = rand.Read(packet[5+len(payload):]) // never fails
	_, err := c.Conn.Write(c.tx.seal(c.txSeq, packet))
	c.txSeq++
	return err
}

// expect reads the next message with a number; messages without a meaning here are skipped.
func (c *Conn) expect(number byte) ([]byte, error) {
	for {
		p, err := c.Receive()
		switch {
		case err != nil:
			return nil, err
		case p[0] == msgIgnore || p[0] == msgDebug || p[0] == msgUnimplemented:
		case p[0] != number:
			return nil, fmt.Errorf("message %d came, not %d", p[0], number)
		default:
			return p, nil
		}
	}
}
