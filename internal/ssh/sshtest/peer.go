package sshtest

import (
	"bufio"
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

// Step is how far a Peer goes along with a client.
type Step uint8

// The steps, in order.
const (
	AtConnect Step = iota // nothing was said
	AtVersion             // both have said their version
	AtKeys                // keys are exchanged
	AtService             // the service is accepted
	AtLogin               // the client is let in
	AtOpen                // it has a channel
	AtRequest             // it has asked for a command or a subsystem, which is not answered
	AtRun                 // that is granted
	Steps
)

var stepNames = [Steps]string{"connect", "version", "keys", "service", "login", "open", "request", "run"}

func (s Step) String() string { return stepNames[s] }

// Hostile is a server that does everything right up to a step, and from there on
// what it likes, packet by packet. All clients are let in.
type Hostile struct {
	At      Step
	Do      func(*Peer)
	Version string // "" is "SSH-2.0-hostile"
	HostKey ssh.Signer

	reached chan struct{}
	once    sync.Once
}

// Peer is one connection of a Hostile.
type Peer struct {
	net.Conn
	End     <-chan struct{} // of the test
	Channel uint32          // the client's number of its first channel, from AtOpen on

	of     *Hostile
	in     *bufio.Reader
	rx, tx *gcm
	opened uint32 // channels
}

// Start listens until the test ends.
func (h *Hostile) Start(t testing.TB) (port int) {
	t.Helper()
	if h.Version == "" {
		h.Version = "SSH-2.0-hostile"
	}
	h.reached = make(chan struct{})
	var mu sync.Mutex
	var conns []net.Conn
	address := Answering(t, func(c net.Conn) {
		mu.Lock()
		conns = append(conns, c)
		mu.Unlock()
		p := &Peer{Conn: c, End: t.Context().Done(), of: h, in: bufio.NewReader(c)}
		_ = p.serve() // the client sees it
	})
	t.Cleanup(func() { // before Answering waits for them
		mu.Lock()
		defer mu.Unlock()
		for _, c := range conns {
			c.Close()
		}
	})
	return address.Port
}

// Reached is closed when a client has first come as far as At.
func (h *Hostile) Reached() <-chan struct{} { return h.reached }

// errMisbehaved ends what would be right.
var errMisbehaved = errors.New("no longer what a server should do")

// at misbehaves, if the step is the one.
func (p *Peer) at(s Step) error {
	if s != p.of.At {
		return nil
	}
	p.of.once.Do(func() { close(p.of.reached) })
	p.of.Do(p)
	return errMisbehaved
}

func (p *Peer) serve() error {
	for s, step := range []func() error{AtConnect: func() error { return nil }, AtVersion: p.versions, AtKeys: p.exchange, AtService: p.service, AtLogin: p.login} {
		if err := step(); err != nil {
			return err
		}
		if err := p.at(Step(s)); err != nil {
			return err
		}
	}
	for {
		if err := p.answer(); err != nil {
			return err
		}
	}
}

func (p *Peer) versions() error {
	_, err := io.WriteString(p.Conn, p.of.Version+"\r\n")
	return err
}

// Message numbers (RFC 4250 section 4.1).
const (
	MsgIgnore         = 2
	MsgDebug          = 4
	msgServiceRequest = 5
	msgServiceAccept  = 6
	MsgKexInit        = 20
	MsgNewKeys        = 21
	msgECDHInit       = 30
	msgECDHReply      = 31
	msgLoginRequest   = 50
	msgLoginFailure   = 51
	MsgLoginSuccess   = 52
	MsgBanner         = 53
	MsgKeyGood        = 60
	MsgGlobalRequest  = 80
	MsgGlobalSuccess  = 81
	msgGlobalFailure  = 82
	MsgOpen           = 90
	MsgOpened         = 91
	MsgWindow         = 93
	MsgData           = 94
	MsgErrorData      = 95
	MsgEOF            = 96
	MsgClose          = 97
	MsgRequest        = 98
	MsgSuccess        = 99
	MsgFailure        = 100
)

// Message is a message of a number and numbers behind it.
func Message(kind byte, numbers ...uint32) []byte {
	m := []byte{kind}
	for _, n := range numbers {
		m = channel.AppendNumber(m, n)
	}
	return m
}

// KexInit is what begins a key exchange.
func (p *Peer) KexInit() []byte {
	m := append([]byte{MsgKexInit}, make([]byte, 16)...)
	for _, names := range []string{ssh.KeyExchangeCurve25519, p.of.HostKey.PublicKey().Type(), ssh.CipherAES128GCM, ssh.CipherAES128GCM,
		ssh.HMACSHA256, ssh.HMACSHA256, "none", "none", "", ""} {
		m = channel.AppendText(m, names)
	}
	return append(m, 0, 0, 0, 0, 0)
}

// exchange is curve25519-sha256 (RFC 8731).
func (p *Peer) exchange() error {
	line, err := p.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	ourInit := p.KexInit()
	if err := p.Send(ourInit); err != nil {
		return err
	}
	theirInit, err := p.expect(MsgKexInit)
	if err != nil {
		return err
	}
	init, err := p.expect(msgECDHInit)
	if err != nil {
		return err
	}
	theirs := channel.FieldsOf(init).Text()
	public, err := ecdh.X25519().NewPublicKey(theirs)
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
	blob, point := p.of.HostKey.PublicKey().Marshal(), private.PublicKey().Bytes()
	h := sha256.New()
	for _, part := range [][]byte{bytes.TrimRight(line, "\r\n"), []byte(p.of.Version), theirInit, ourInit, blob, theirs, point} {
		h.Write(channel.AppendText(nil, part))
	}
	h.Write(secret)
	session := h.Sum(nil)
	signature, err := p.of.HostKey.Sign(rand.Reader, session)
	if err != nil {
		return err
	}
	reply := []byte{msgECDHReply}
	for _, part := range [][]byte{blob, point, ssh.Marshal(signature)} {
		reply = channel.AppendText(reply, part)
	}
	if err := errors.Join(p.Send(reply), p.Send([]byte{MsgNewKeys})); err != nil {
		return err
	}
	if _, err := p.expect(MsgNewKeys); err != nil {
		return err
	}
	derive := func(letter byte) []byte {
		sum := sha256.Sum256(bytes.Join([][]byte{secret, session, {letter}, session}, nil))
		return sum[:]
	}
	p.rx, p.tx = newGCM(derive('C'), derive('A')), newGCM(derive('D'), derive('B'))
	return nil
}

func (p *Peer) service() error {
	if _, err := p.expect(msgServiceRequest); err != nil {
		return err
	}
	return p.Send(channel.AppendText([]byte{msgServiceAccept}, "ssh-userauth"))
}

// login lets in whoever signs, whatever it says.
func (p *Peer) login() error {
	for {
		request, err := p.expect(msgLoginRequest)
		if err != nil {
			return err
		}
		f := channel.FieldsOf(request)
		f.Text()
		f.Text()
		method := string(f.Text())
		signed, algorithm, key := f.Bool(), f.Text(), f.Text()
		switch {
		case method != "publickey":
			err = p.Send(channel.AppendBool(channel.AppendText([]byte{msgLoginFailure}, "publickey"), false))
		case signed:
			return p.Send([]byte{MsgLoginSuccess})
		default:
			err = p.Send(channel.AppendText(channel.AppendText([]byte{MsgKeyGood}, algorithm), key))
		}
		if err != nil {
			return err
		}
	}
}

// answer answers a message of a client that is logged in.
func (p *Peer) answer() error {
	m, err := p.Receive()
	if err != nil {
		return err
	}
	f := channel.FieldsOf(m)
	switch m[0] {
	case MsgGlobalRequest:
		if f.Text(); f.Bool() {
			return p.Send([]byte{msgGlobalFailure})
		}
	case MsgOpen:
		f.Text()
		number := f.Number()
		err := p.Send(Message(MsgOpened, number, p.opened, 2<<20, 32<<10))
		if p.opened++; p.opened > 1 || err != nil {
			return err
		}
		p.Channel = number
		return p.at(AtOpen)
	case MsgRequest:
		f.Number()
		name, reply := string(f.Text()), f.Bool()
		if name != "exec" && name != "subsystem" {
			if !reply {
				return nil
			}
			answer := byte(MsgFailure)
			if name == "pty-req" { // a client that gets none says so, and may end
				answer = MsgSuccess
			}
			return p.Send(Message(answer, p.Channel))
		}
		if err := p.at(AtRequest); err != nil {
			return err
		}
		return errors.Join(p.Send(Message(MsgSuccess, p.Channel)), p.at(AtRun))
	}
	return nil
}

// expect is the next message that means something.
func (p *Peer) expect(kind byte) ([]byte, error) {
	for {
		m, err := p.Receive()
		switch {
		case err != nil:
			return nil, err
		case m[0] == kind:
			return m, nil
		case m[0] > MsgDebug:
			return nil, fmt.Errorf("message %d came, not %d", m[0], kind)
		}
	}
}

// Receive reads a message.
func (p *Peer) Receive() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(p.in, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > 256<<10 || n < 2 {
		return nil, channel.ErrShort
	}
	body := make([]byte, int(n)+p.rx.overhead())
	if _, err := io.ReadFull(p.in, body); err != nil {
		return nil, err
	}
	body, err := p.rx.open(head[:], body)
	if err != nil || int(body[0]) >= len(body)-1 {
		return nil, errors.Join(err, channel.ErrShort)
	}
	return body[1 : len(body)-int(body[0])], nil
}

// Send writes a message, whatever it is.
func (p *Peer) Send(m []byte) error {
	const block = aes.BlockSize
	counted := 1 // and the length, before there are keys
	if p.tx == nil {
		counted += 4
	}
	padding := 2*block - (counted+len(m))%block
	body := append(append([]byte{byte(padding)}, m...), make([]byte, padding)...)
	head := channel.AppendNumber(nil, uint32(len(body)))
	_, err := p.Write(append(head, p.tx.seal(head, body)...))
	return err
}

// Ask makes a request of the client, on its channel if it has one.
func (p *Peer) Ask(name string, reply bool) error {
	m := Message(MsgRequest, p.Channel)
	if p.opened == 0 {
		m = []byte{MsgGlobalRequest}
	}
	return p.Send(channel.AppendBool(channel.AppendText(m, name), reply))
}

// Data sends output.
func (p *Peer) Data(text string) error {
	return p.Send(channel.AppendText(Message(MsgData, p.Channel), text))
}

// Exit tells an exit status.
func (p *Peer) Exit(status uint32) error {
	m := channel.AppendBool(channel.AppendText(Message(MsgRequest, p.Channel), "exit-status"), false)
	return p.Send(channel.AppendNumber(m, status))
}

// gcm is aes128-gcm@openssh.com in one direction (RFC 5647); nil are no keys.
type gcm struct {
	aead  cipher.AEAD
	nonce [12]byte
}

func newGCM(key, iv []byte) *gcm {
	block, _ := aes.NewCipher(key[:16]) // fails on wrong lengths only
	aead, _ := cipher.NewGCM(block)
	g := &gcm{aead: aead}
	copy(g.nonce[:], iv)
	return g
}

func (g *gcm) overhead() int {
	if g == nil {
		return 0
	}
	return g.aead.Overhead()
}

func (g *gcm) open(head, body []byte) ([]byte, error) {
	if g == nil {
		return body, nil
	}
	defer g.step()
	return g.aead.Open(body[:0], g.nonce[:], body, head)
}

func (g *gcm) seal(head, body []byte) []byte {
	if g == nil {
		return body
	}
	defer g.step()
	return g.aead.Seal(nil, g.nonce[:], body, head)
}

func (g *gcm) step() {
	binary.BigEndian.PutUint64(g.nonce[4:], binary.BigEndian.Uint64(g.nonce[4:])+1)
}
