package transport

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/pubkey"
)

// Version is our version line (RFC 4253 section 4.2).
const Version = "SSH-2.0-sshpace"

// Config of a handshake. Lists are in order of preference; names that this package lacks are left
// out, and an empty list means those that package ssh calls secure.
type Config struct {
	Version                     string // that we show, such as Version
	KeyExchanges, Ciphers, MACs []string
	HostKeys                    []string
	// HostKey decides about the server's key, whose signature has been verified. It must not be
	// nil.
	HostKey func(key ssh.PublicKey) error
	// Step is called for every step when it is done; nil is never called.
	Step func(Step)
}

// Step is a point in a login.
type Step uint8

// The steps of a login, in order. The caller reports those before the version line and after the
// login.
const (
	StepDial     Step = iota // connecting begins
	StepConnect              // connected
	StepVersion              // the server's version line has come
	StepKexInit              // its KEXINIT
	StepKexReply             // its half of the key exchange
	StepHostKey              // its key is known
	StepNewKeys              // its NEWKEYS
	StepService              // it has accepted the service
	StepMethods              // it has refused a request, and said which methods can continue
	StepQuery                // it has said whether it accepts a key
	StepSign                 // we have signed
	StepAuth                 // it has let us in
	StepOpen                 // it has opened a session
	StepExec                 // it runs the command
	StepExit                 // it has sent the result

	Steps = iota // how many there are
)

func (c *Conn) step(s Step) {
	if c.config.Step != nil {
		c.config.Step(s)
	}
}

// Handshake exchanges version lines and keys over raw. If it fails, the result serves for Greeting,
// and the caller closes raw.
func Handshake(raw net.Conn, config *Config) (*Conn, error) {
	c := &Conn{net: raw, config: config, opener: plain{}, sealer: plain{}, ours: config.Version}
	c.in = newInput(heard{c})
	c.out = append(c.out, config.Version+"\r\n"...)
	c.mu.Lock()
	c.sendKexInit()
	c.mu.Unlock()
	if err := c.greeting.read(c.in); err != nil {
		return c, err
	}
	c.step(StepVersion)
	return c, c.firstExchange()
}

// firstExchange waits for the server's KEXINIT. With strict key exchange nothing may come before
// it; otherwise IGNORE and DEBUG may.
func (c *Conn) firstExchange() error {
	for before := 0; ; before++ {
		p, err := c.raw()
		if err != nil {
			return err
		}
		switch p[0] {
		case msgIgnore, msgDebug:
			continue
		case msgKexInit:
		default:
			return unexpected(p[0], msgKexInit)
		}
		c.step(StepKexInit)
		theirs, err := parseInit(p)
		if err != nil {
			return err
		}
		c.hears = slices.Contains(theirs.Kex, extInfoServer)
		if slices.Contains(theirs.Kex, strictServer) {
			if c.strict = true; before > 0 {
				return errors.New("ssh: packets before KEXINIT in a strict key exchange")
			}
		}
		return c.exchange(theirs)
	}
}

func unexpected(got, want byte) error {
	return fmt.Errorf("ssh: unexpected message type %d (expected %d)", got, want)
}

// kexReply is the server's half (RFC 5656 section 4).
type kexReply struct {
	HostKey   []byte
	Public    []byte
	Signature []byte
}

// exchange exchanges keys, begun by the server's KEXINIT.
func (c *Conn) exchange(theirs *proposal) error {
	ours, err := c.answerKexInit()
	if err != nil {
		return err
	}
	c.theirs = theirs.KexInit
	if c.chosen, err = agree(&ours.KexInit, &theirs.KexInit); err != nil {
		return err
	}
	if err := c.skipGuess(&theirs.KexInit); err != nil {
		return err
	}
	o, err := c.offer(methodNamed(c.chosen.kex))
	if err != nil {
		return err
	}
	if err := c.sayKex(channel.AppendText([]byte{o.message}, o.public())); err != nil {
		return err
	}
	p, err := c.expect(o.message + 1)
	if err != nil {
		return err
	}
	c.step(StepKexReply)
	f := channel.FieldsOf(p)
	reply := &kexReply{f.Text(), f.Text(), f.Text()}
	if err := f.End(); err != nil {
		return err
	}
	k, err := c.conclude(o, ours.packet, theirs.packet, reply)
	if err != nil {
		return err
	}
	c.step(StepHostKey)
	return c.changeKeys(k)
}

// offer is our half of a key exchange, and its message.
type offer struct {
	half
	hash    crypto.Hash
	message byte   // brings the public value; the next one is the answer
	group   []byte // messages about a group that the server has chosen
}

func (c *Conn) offer(m method) (o *offer, err error) {
	o = &offer{hash: m.hash, message: msgKexECDHInit}
	if m.make != nil {
		o.half, err = m.make()
		return o, err
	}
	o.message = msgGroupInit
	o.half, o.group, err = c.askGroup()
	return o, err
}

// sayKex sends a message of a key exchange, for whose end others wait.
func (c *Conn) sayKex(message []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealLocked(message, nil)
	return c.flushLocked()
}

// answerKexInit returns our KEXINIT, and sends it if that has not happened.
func (c *Conn) answerKexInit() (*proposal, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kexInit == nil {
		c.sendKexInit()
	}
	return c.kexInit, c.flushLocked()
}

// skipGuess skips a packet that the server sent on a wrong guess (RFC 4253 section 7).
func (c *Conn) skipGuess(theirs *KexInit) error {
	if !theirs.FirstPacketFollows || first(theirs.Kex) == c.chosen.kex && first(theirs.HostKey) == c.chosen.hostKey {
		return nil
	}
	p, err := c.raw()
	if err == nil && (p[0] < msgKexFirst || p[0] > msgKexLast) {
		err = unexpected(p[0], msgKexECDHReply)
	}
	return err
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// expect reads a packet of the key exchange. A first exchange that is strict may not even have
// IGNORE and DEBUG in between (OpenSSH, PROTOCOL section 1.9).
func (c *Conn) expect(want byte) ([]byte, error) {
	for {
		p, err := c.raw()
		switch {
		case err != nil:
			return nil, err
		case p[0] == want:
			return p, nil
		case c.strict && !c.keyed || p[0] != msgIgnore && p[0] != msgDebug:
			return nil, unexpected(p[0], want)
		}
	}
}

// conclude verifies that the server holds its host key and that it is the right one, and derives
// the keys.
func (c *Conn) conclude(o *offer, ourInit, theirInit []byte, r *kexReply) (*keys, error) {
	secret, err := o.secret(r.Public)
	if err != nil {
		return nil, err
	}
	h := o.hash.New()
	hashed(h, []byte(c.ours), []byte(c.greeting.Version), ourInit, theirInit, r.HostKey)
	h.Write(o.group)
	hashed(h, o.public(), r.Public)
	h.Write(secret)
	sum := h.Sum(nil)
	key, err := verified(c.chosen.hostKey, r, sum)
	if err != nil {
		return nil, err
	}
	switch {
	case c.session == nil:
		if err := c.config.HostKey(key); err != nil {
			return nil, err
		}
		c.session, c.hostKey, c.proof = sum, string(r.HostKey), r.Signature
	case c.hostKey != string(r.HostKey):
		return nil, errors.New("ssh: the host key has changed during the connection")
	}
	return &keys{hash: o.hash, secret: secret, exchange: sum, session: c.session}, nil
}

// verified returns the host key, if it is of the agreed type and has signed the exchange with the
// agreed algorithm.
func verified(algorithm string, r *kexReply, sum []byte) (ssh.PublicKey, error) {
	key, err := pubkey.Parse(r.HostKey)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(signing(key.Type()), algorithm) {
		return nil, fmt.Errorf("ssh: a host key of type %q, agreed was %q", key.Type(), algorithm)
	}
	var sig ssh.Signature
	if err := ssh.Unmarshal(r.Signature, &sig); err != nil {
		return nil, err
	}
	if sig.Format != alg.Plain(algorithm) || len(sig.Rest) > 0 {
		return nil, fmt.Errorf("ssh: invalid signature algorithm %q, expected %q", sig.Format, alg.Plain(algorithm))
	}
	return key, key.Verify(sum, &sig)
}

// signing returns the algorithms that a key of a type signs with.
func signing(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256, ssh.KeyAlgoRSA}
	case ssh.CertAlgoRSAv01:
		return []string{ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01, ssh.CertAlgoRSAv01}
	}
	return []string{keyType}
}

// changeKeys sends NEWKEYS, waits for the server's, and uses the new keys. In a first key exchange
// NEWKEYS goes with the following login, if the server's has come already.
func (c *Conn) changeKeys(k *keys) error {
	up, err := k.cipher(c.chosen.up, 'A', 'C', 'E')
	if err != nil {
		return err
	}
	down, err := k.cipher(c.chosen.down, 'B', 'D', 'F')
	if err != nil {
		return err
	}
	if err := c.changeOurs(up); err != nil {
		return err
	}
	if _, err := c.expect(msgNewKeys); err != nil {
		return err
	}
	c.opener, c.recv, c.keyed = down, c.recv.renewed(c.strict), true
	c.step(StepNewKeys)
	return nil
}

func (c *Conn) changeOurs(up sealer) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealLocked([]byte{msgNewKeys}, nil)
	c.sealer, c.send, c.kexInit = up, c.send.renewed(c.strict), nil
	if c.hears && !c.keyed {
		c.sealLocked(extInfo(), nil)
	}
	for _, p := range c.pending {
		c.sealLocked(p, nil)
	}
	c.pending = nil
	if !c.loggedIn {
		return nil
	}
	return c.flushLocked()
}

// renew begins a key exchange when a key has been used enough.
func (c *Conn) renew() error {
	if !c.loggedIn {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	worn := c.send.worn(suiteNamed(c.chosen.up.cipher)) || c.recv.worn(suiteNamed(c.chosen.down.cipher))
	if !worn || c.kexInit != nil {
		return nil
	}
	c.sendKexInit()
	return c.flushLocked()
}

// worn reports whether keys have been used enough (RFC 4344 section 3.1).
func (n count) worn(s suite) bool {
	const packets = 1 << 31
	return n.packets > packets || n.bytes > s.limit
}

// extInfo asks the server to repeat its signature algorithms when it knows the user: blocks of
// Match in its configuration may allow other ones (OpenSSH, PROTOCOL section 1.10).
func extInfo() []byte {
	return append(channel.AppendNumber([]byte{msgExtInfo}, 1), channel.Text("ext-info-in-auth@openssh.com", "0")...)
}

// maxExtended is how many EXT_INFO messages count, as for ssh: the one after the key exchange and
// the one within the login.
const maxExtended = 2

// extensions keeps server-sig-algs (RFC 8308 section 2.3).
func (c *Conn) extensions(p []byte) {
	if c.extended++; c.extended > maxExtended {
		return
	}
	f := channel.FieldsOf(p)
	for range min(f.Number(), 64) {
		name, value := f.Text(), f.Text()
		if f.Err() != nil {
			return
		}
		switch string(name) {
		case "server-sig-algs":
			c.sigAlgs = strings.Split(string(value), ",")
		case "publickey-hostbound@openssh.com":
			c.bound = string(value) == "0"
		}
	}
}

// Binding shows an agent which server a login is for (OpenSSH, PROTOCOL.agent section 1,
// session-bind@openssh.com).
func (c *Conn) Binding() []byte {
	return channel.AppendBool(channel.Text(c.hostKey, string(c.session), string(c.proof)), false)
}

// Close closes the connection.
func (c *Conn) Close() error { return c.net.Close() }

var _ io.Closer = (*Conn)(nil)
