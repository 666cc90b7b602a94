package transport

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"

	"sshpace/internal/ssh/channel"
)

// Message numbers (RFC 4250 section 4.1, RFC 8308 section 2.3).
const (
	msgDisconnect      = 1
	msgIgnore          = 2
	msgUnimplemented   = 3
	msgDebug           = 4
	msgServiceRequest  = 5
	msgServiceAccept   = 6
	msgExtInfo         = 7
	msgKexInit         = 20
	msgNewKeys         = 21
	msgKexFirst        = 30 // to msgKexLast: of the methods (RFC 4250 section 4.1.1)
	msgKexLast         = 49
	msgKexECDHInit     = 30 // RFC 5656 section 7.1
	msgKexECDHReply    = 31
	msgGroup           = 31 // RFC 4419 section 5
	msgGroupInit       = 32
	msgGroupRequest    = 34
	msgUserauthRequest = 50
	msgUserauthFailure = 51
	msgUserauthSuccess = 52
	msgUserauthBanner  = 53
	msgUserauthMore    = 60 // PK_OK, PASSWD_CHANGEREQ or INFO_REQUEST, by the method
	msgUserauthAnswers = 61 // RFC 4256 section 3.4
)

// maxLines bounds the text of a server before its version line.
const maxLines = 1024

// sealer turns payloads into packets, opener packets into payloads.
type (
	sealer interface {
		// seal appends the packet to dst; its payload are both parts.
		seal(dst []byte, seq uint32, head, rest []byte) []byte
	}
	opener interface {
		// open reads a packet; its payload is not empty, and valid until the next read.
		open(in *input, seq uint32) ([]byte, error)
	}
)

// Conn is a connection from its version lines on.
type Conn struct {
	net    net.Conn
	config *Config
	in     *input
	opener opener
	recv   count

	ours     string // version line
	greeting Greeting
	session  []byte // session identifier: the first exchange hash
	hostKey  string // blob, of the first key exchange
	proof    []byte // its signature of session
	strict   bool
	keyed    bool     // the first key exchange is over
	extended int      // EXT_INFO messages that have come
	sigAlgs  []string // server-sig-algs (RFC 8308 section 3.1); nil = not received
	hears    bool     // the server takes an EXT_INFO of ours
	bound    bool     // it knows logins that name its host key (OpenSSH, PROTOCOL section 3.1)
	chosen   algorithms
	theirs   KexInit // the server's
	loggedIn bool
	banner   string   // the last line of it
	sent     [][]byte // ahead of Mux: a command in flight; see Asked
	execSeq  uint32   // number of the packet that asks for it

	mu      sync.Mutex // guards the fields below
	sealer  sealer
	send    count
	out     []byte    // packets that wait for flush
	kexInit *proposal // ours, from when it was sent until NEWKEYS
	pending [][]byte  // payloads that wait for the end of a key exchange
}

// count counts packets and bytes in one direction.
type count struct {
	seq            uint32 // of the next packet
	packets, bytes int64  // with these keys
}

func (n *count) add(bytes int) { n.seq++; n.packets++; n.bytes += int64(bytes) }

// renewed returns the count with new keys; strict key exchange starts packets anew.
func (n count) renewed(strict bool) count {
	if strict {
		return count{}
	}
	return count{seq: n.seq}
}

// DisconnectError is the server's farewell (RFC 4253 section 11.1).
type DisconnectError struct {
	Reason  uint32
	Message string // by the server: not to be shown raw
}

func (e *DisconnectError) Error() string {
	return fmt.Sprintf("ssh: disconnect, reason %d: %s", e.Reason, e.Message)
}

var errShort = errors.New("ssh: packet of a wrong length")

// raw reads the next packet of any kind, in memory of its own.
func (c *Conn) raw() ([]byte, error) {
	p, err := c.brief()
	return bytes.Clone(p), err
}

// brief reads the next packet of any kind, which is valid until the next read.
func (c *Conn) brief() ([]byte, error) {
	p, err := c.opener.open(c.in, c.recv.seq)
	if err != nil {
		return nil, err
	}
	c.recv.add(len(p))
	if p[0] != msgDisconnect {
		return p, nil
	}
	f := channel.FieldsOf(p) // some servers leave out its end
	return nil, &DisconnectError{f.Number(), string(f.Text())}
}

// next reads the next packet for the layers above this package, and exchanges keys when the server
// wants that or it is time; as with ssh, not before the login has ended. The packet is valid until
// the next read.
func (c *Conn) next() ([]byte, error) {
	for {
		if err := c.renew(); err != nil {
			return nil, err
		}
		p, err := c.brief()
		if err != nil {
			return nil, err
		}
		switch {
		case p[0] == msgIgnore, p[0] == msgDebug, p[0] == msgUnimplemented && c.loggedIn:
		case p[0] == msgExtInfo:
			c.extensions(p)
		case p[0] == msgKexInit && c.loggedIn:
			theirs, err := parseInit(bytes.Clone(p))
			if err == nil {
				err = c.exchange(theirs)
			}
			if err != nil {
				return nil, err
			}
		default:
			return p, nil
		}
	}
}

// queue holds a payload until flush. During a key exchange nothing else may be sent (RFC 4253
// section 7.1), so it waits for the end of that.
func (c *Conn) queue(payload []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.queueLocked(payload, nil)
}

func (c *Conn) queueLocked(head, rest []byte) {
	if c.kexInit != nil {
		c.pending = append(c.pending, slices.Concat(head, rest))
		return
	}
	c.sealLocked(head, rest)
}

func (c *Conn) sealLocked(head, rest []byte) {
	c.out = c.sealer.seal(c.out, c.send.seq, head, rest)
	c.send.add(len(head) + len(rest))
}

// flush sends all queued payloads, in one write.
func (c *Conn) flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flushLocked()
}

func (c *Conn) flushLocked() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.net.Write(c.out)
	if c.out = c.out[:0]; cap(c.out) > keep && c.loggedIn {
		giveBulk(c.out)
		c.out = nil
	}
	return err
}

// heard is the input from the server. Until the login has ended all queued payloads leave before a
// read, so that the server has everything that it waits for.
type heard struct{ *Conn }

func (h heard) Read(p []byte) (int, error) {
	if !h.loggedIn {
		if err := h.flush(); err != nil {
			return 0, err
		}
	}
	n, err := h.net.Read(p)
	h.greeting.More = h.greeting.More || n > 0 && h.greeting.Version != ""
	return n, err
}

// plain is the packet format before there are keys (RFC 4253 section 6).
type plain struct{}

const plainBlock = 8

func (plain) seal(dst []byte, _ uint32, head, rest []byte) []byte {
	return frame(dst, head, rest, plainBlock, 4)
}

func (plain) open(in *input, _ uint32) ([]byte, error) {
	packet, _, err := arrived(in, binary.BigEndian.Uint32, 1, 0, 0)
	if err != nil {
		return nil, err
	}
	return unpad(packet[4:])
}

// arrived reads a packet: the four bytes of its length, which length reads, and may decrypt; that
// many bytes, with counted more a multiple of block; and code bytes of a MAC.
func arrived(in *input, length func(head []byte) uint32, block, counted uint32, code int) (packet []byte, n int, err error) {
	head, err := in.peek(4)
	if err != nil {
		return nil, 0, err
	}
	size := length(head)
	if size > channel.MaxMessage || (size+counted)%block != 0 {
		return nil, 0, errShort
	}
	n = int(size)
	packet, err = in.peek(len(head) + n + code)
	in.take(len(packet))
	return packet, n, err
}

// frame appends length, padding length, payload and padding. counted is how many of the four bytes
// of the length count towards the multiple of block. As with ssh, it hides the length of a
// password.
func frame(dst, head, rest []byte, block, counted int) []byte {
	const least, hiding = 4, 64
	if head[0] == msgUserauthRequest || head[0] == msgUserauthAnswers {
		block = hiding
	}
	size := len(head) + len(rest)
	padding := block - (counted+1+size)%block
	if padding < least {
		padding += block
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(1+size+padding))
	dst = append(dst, byte(padding))
	dst = append(append(dst, head...), rest...)
	n := len(dst)
	dst = append(dst, make([]byte, padding)...)
	_, _ = rand.Read(dst[n:]) // never fails
	return dst
}

// unpad returns the payload of a packet without its length.
func unpad(body []byte) ([]byte, error) {
	if len(body) < 1 || int(body[0]) >= len(body)-1 {
		return nil, errShort
	}
	return body[1 : len(body)-int(body[0])], nil
}

const (
	// keep is the most memory for output that an idle connection keeps.
	keep = 1 << 10
	// bulkSize is a little more than channels send at once.
	bulkSize = 264 << 10
)

// bulks are for data in flight. A connection has one only while it sends, so that few are in use,
// and those are in the processor's cache.
var bulks = sync.Pool{New: func() any { return new([bulkSize]byte) }}

// makeRoom makes room for packets of together n bytes. The caller holds mu.
func (c *Conn) makeRoom(n, packets int) {
	const around = 64 // of a packet of data
	if n += packets * around; n > keep && c.kexInit == nil {
		c.out = withBulk(c.out, n)
	}
}

// withBulk returns out with room for n bytes more.
func withBulk(out []byte, n int) []byte {
	if cap(out)-len(out) >= n || len(out)+n > bulkSize {
		return out
	}
	return append(bulks.Get().(*[bulkSize]byte)[:0], out...)
}

// giveBulk returns the memory of withBulk; other memory is dropped.
func giveBulk(out []byte) {
	if cap(out) == bulkSize {
		bulks.Put((*[bulkSize]byte)(out[:bulkSize]))
	}
}
