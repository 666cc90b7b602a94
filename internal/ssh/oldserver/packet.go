package oldserver

import (
	"bufio"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // that is what these clients have
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/blowfish" //lint:ignore SA1019 to measure it again
	"golang.org/x/crypto/cast5"    //lint:ignore SA1019 likewise
)

// Ciphers are what the server has, all of 64-bit blocks in CBC mode with keys of
// 128 bits (RFC 4253 section 6.3).
var ciphers = []struct {
	name string
	make func(key []byte) (cipher.Block, error)
}{
	{"blowfish-cbc", func(key []byte) (cipher.Block, error) { return blowfish.NewCipher(key) }},
	{"cast128-cbc", func(key []byte) (cipher.Block, error) { return cast5.NewCipher(key) }},
}

const (
	block     = 8
	keySize   = 16
	macSize   = sha1.Size
	maxPacket = 256 << 10
)

// half is one direction of the binary packet protocol (RFC 4253 section 6); mode is
// nil until keys are there.
type half struct {
	seq  uint32
	mode cipher.BlockMode
	mac  hash.Hash
}

// sum is the MAC of a packet in the clear.
func (h *half) sum(packet []byte) []byte {
	var seq [4]byte
	binary.BigEndian.PutUint32(seq[:], h.seq)
	h.mac.Reset()
	h.mac.Write(seq[:])
	h.mac.Write(packet)
	return h.mac.Sum(nil)
}

// conn is a connection from its version lines on.
type conn struct {
	net net.Conn
	in  *bufio.Reader
	rx  half

	mu sync.Mutex // guards tx
	tx half
}

var errPacket = errors.New("a packet is of a wrong length, or was changed on its way")

// read returns the payload of the next packet.
func (c *conn) read() ([]byte, error) {
	first := make([]byte, block)
	if _, err := io.ReadFull(c.in, first); err != nil {
		return nil, err
	}
	if c.rx.mode != nil {
		c.rx.mode.CryptBlocks(first, first)
	}
	n := int(binary.BigEndian.Uint32(first))
	if n > maxPacket || (n+4)%block != 0 || n < block {
		return nil, errPacket
	}
	packet := make([]byte, 4+n)
	copy(packet, first)
	if _, err := io.ReadFull(c.in, packet[block:]); err != nil {
		return nil, err
	}
	if c.rx.mode != nil {
		c.rx.mode.CryptBlocks(packet[block:], packet[block:])
		var mac [macSize]byte
		if _, err := io.ReadFull(c.in, mac[:]); err != nil {
			return nil, err
		}
		if !hmac.Equal(mac[:], c.rx.sum(packet)) {
			return nil, errPacket
		}
	}
	c.rx.seq++
	padding := int(packet[4])
	if padding+2 > n {
		return nil, errPacket
	}
	return packet[5 : 4+n-padding], nil
}

// write sends a payload.
func (c *conn) write(payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	padding := 2*block - (5+len(payload))%block
	packet := make([]byte, 5+len(payload)+padding, 5+len(payload)+padding+macSize)
	binary.BigEndian.PutUint32(packet, uint32(len(packet)-4))
	packet[4] = byte(padding)
	copy(packet[5:], payload)
	_, _ = rand.Read(packet[5+len(payload):]) // never fails
	var mac []byte
	if c.tx.mode != nil {
		mac = c.tx.sum(packet)
		c.tx.mode.CryptBlocks(packet, packet)
	}
	c.tx.seq++
	_, err := c.net.Write(append(packet, mac...))
	return err
}

// expect reads on until a message of that number, past those that mean nothing here.
func (c *conn) expect(number byte) ([]byte, error) {
	for {
		p, err := c.read()
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
