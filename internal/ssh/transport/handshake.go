package transport

import (
	"bufio"
	"crypto"
	"crypto/rand"
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
	StepQuery                // it has said whether it accepts a key
	StepAuth                 // it has let us in
	StepExec                 // it runs the command
	StepExit                 // it has sent the result
)

func (c *Conn) step(s Step) {
	if c.config.Step != nil {
		c.config.Step(s)
	}
}

// Algorithms returns the algorithms of this package, the ones with few round trips and little time
// first. Insecure ones are used only where they are named.
func Algorithms() (kexes, ciphers, codes []string) {
	for _, m := range methods {
		kexes = append(kexes, m.name)
	}
	for _, s := range suites {
		ciphers = append(ciphers, s.name)
	}
	for _, m := range macs {
		codes = append(codes, m.name)
	}
	return kexes, ciphers, codes
}

// known returns a preference as far as all has it.
func known(preference, secure, all []string) []string {
	if len(preference) == 0 {
		preference = secure
	}
	return slices.DeleteFunc(slices.Clone(preference), func(name string) bool { return !slices.Contains(all, name) })
}

// Handshake exchanges version lines and keys over raw. If it fails, the result serves for Greeting,
// and the caller closes raw.
func Handshake(raw net.Conn, config *Config) (*Conn, error) {
	c := &Conn{net: raw, config: config, opener: plain{}, sealer: plain{}, ours: config.Version}
	c.in = bufio.NewReader(heard{c})
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

// Greeting is the text of a server before the key exchange.
type Greeting struct {
	Version string // its version line
	Text    []byte // the beginning of the text before the version line
	More    bool   // more text came after it
}

// maxText is how much of a greeting is kept.
const maxText = 256

// read reads a peer's version line and the text that a server may send before it (RFC 4253 section
// 4.2).
func (g *Greeting) read(in *bufio.Reader) error {
	for range maxLines {
		line, err := in.ReadSlice('\n')
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if err == nil && (strings.HasPrefix(text, "SSH-2.0-") || strings.HasPrefix(text, "SSH-1.99-")) {
			g.Version, g.More = text, in.Buffered() > 0
			return nil
		}
		g.Text = append(g.Text, line[:min(len(line), maxText-len(g.Text))]...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			return errors.New("ssh: a line before the key exchange is too long")
		case err != nil:
			return err
		case strings.HasPrefix(text, "SSH-"), strings.HasPrefix(text, "HTTP/"):
			return errors.New("ssh: the server speaks another protocol")
		}
	}
	return errors.New("ssh: the server sends text instead of a version line")
}

// Greeting returns the server's first text.
func (c *Conn) Greeting() *Greeting { return &c.greeting }

// HostKeys returns the host key algorithms that the server has.
func (c *Conn) HostKeys() []string { return c.hostKeys }

// ReadGreeting reads a peer's text before anything is negotiated.
func ReadGreeting(r io.Reader) (version string, lists *KexInit, err error) {
	in := bufio.NewReader(r)
	var g Greeting
	if err := g.read(in); err != nil {
		return "", nil, fmt.Errorf("read the version line: %w", err)
	}
	version = g.Version
	p, err := plain{}.open(in, 0)
	if err == nil && p[0] != msgKexInit {
		err = unexpected(p[0], msgKexInit)
	}
	if err != nil {
		return version, nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	theirs, err := parseInit(p)
	if err != nil {
		return version, nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	return version, &theirs.KexInit, nil
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

// Names in the list of key exchanges that are signals: RFC 8308 section 2.1 and OpenSSH's PROTOCOL
// section 1.9.
const (
	extInfoClient = "ext-info-c"
	extInfoServer = "ext-info-s"
	strictClient  = "kex-strict-c-v00@openssh.com"
	strictServer  = "kex-strict-s-v00@openssh.com"
)

// cookie is how many random bytes begin a KEXINIT.
const cookie = 16

// KexInit is a KEXINIT (RFC 4253 section 7.1).
type KexInit struct {
	Kex, HostKey         []string
	CipherUp, CipherDown []string
	MACUp, MACDown       []string
	PackUp, PackDown     []string
	LangUp, LangDown     []string
	FirstPacketFollows   bool
}

// Strict reports whether the side knows strict key exchange, the remedy for Terrapin
// (CVE-2023-48795).
func (m *KexInit) Strict() bool {
	return slices.Contains(m.Kex, strictServer) || slices.Contains(m.Kex, strictClient)
}

// lists returns the lists of names in their order.
func (m *KexInit) lists() [10]*[]string {
	return [...]*[]string{
		&m.Kex, &m.HostKey, &m.CipherUp, &m.CipherDown, &m.MACUp, &m.MACDown,
		&m.PackUp, &m.PackDown, &m.LangUp, &m.LangDown,
	}
}

func (m *KexInit) marshal() []byte {
	p := make([]byte, 1+cookie, 1024)
	p[0] = msgKexInit
	_, _ = rand.Read(p[1:]) // never fails
	for _, list := range m.lists() {
		p = channel.AppendNames(p, *list)
	}
	return channel.AppendNumber(channel.AppendBool(p, m.FirstPacketFollows), 0)
}

// proposal is a KEXINIT and its packet, which is hashed.
type proposal struct {
	KexInit
	packet []byte
}

func parseInit(message []byte) (*proposal, error) {
	f := channel.FieldsOf(message)
	f.Bytes(cookie)
	p := &proposal{packet: message}
	for _, list := range p.lists() {
		*list = f.Names()
	}
	p.FirstPacketFollows = f.Bool()
	f.Number() // reserved
	return p, f.End()
}

// sendKexInit queues our KEXINIT. The caller holds mu.
func (c *Conn) sendKexInit() {
	m := c.init()
	c.kexInit = &proposal{*m, m.marshal()}
	c.sealLocked(c.kexInit.packet, nil)
}

func (c *Conn) init() *KexInit {
	kexes, ciphers, codes := Algorithms()
	secure := ssh.SupportedAlgorithms()
	ciphers, codes = known(c.config.Ciphers, secure.Ciphers, ciphers), known(c.config.MACs, secure.MACs, codes)
	none := []string{"none"}
	m := &KexInit{
		Kex: known(c.config.KeyExchanges, secure.KeyExchanges, kexes), HostKey: c.config.HostKeys,
		CipherUp: ciphers, CipherDown: ciphers, MACUp: codes, MACDown: codes, PackUp: none, PackDown: none,
	}
	if c.session == nil {
		m.Kex = append(m.Kex, extInfoClient, strictClient)
	}
	return m
}

// algorithms are those that both sides have agreed on.
type algorithms struct {
	kex, hostKey string
	up, down     direction
}

// direction holds the algorithms of one direction. A cipher that authenticates by itself has no
// MAC.
type direction struct{ cipher, mac string }

// Negotiated returns the algorithms that both sides have agreed on, after Handshake.
func (c *Conn) Negotiated() ssh.NegotiatedAlgorithms {
	return ssh.NegotiatedAlgorithms{
		KeyExchange: c.chosen.kex, HostKey: c.chosen.hostKey,
		Write: ssh.DirectionAlgorithms{Cipher: c.chosen.up.cipher, MAC: c.chosen.up.mac},
		Read:  ssh.DirectionAlgorithms{Cipher: c.chosen.down.cipher, MAC: c.chosen.down.mac},
	}
}

// agree picks the first of ours that the server has too (RFC 4253 section 7.1).
func agree(ours, theirs *KexInit) (a algorithms, err error) {
	for _, list := range []struct {
		what         string
		ours, theirs []string
		to           *string
		cipher       *string // of a MAC
	}{
		{"key exchange", ours.Kex, theirs.Kex, &a.kex, nil},
		{"host key", ours.HostKey, theirs.HostKey, &a.hostKey, nil},
		{"client to server cipher", ours.CipherUp, theirs.CipherUp, &a.up.cipher, nil},
		{"server to client cipher", ours.CipherDown, theirs.CipherDown, &a.down.cipher, nil},
		{"client to server MAC", ours.MACUp, theirs.MACUp, &a.up.mac, &a.up.cipher},
		{"server to client MAC", ours.MACDown, theirs.MACDown, &a.down.mac, &a.down.cipher},
		{"client to server compression", ours.PackUp, theirs.PackUp, new(string), nil},
		{"server to client compression", ours.PackDown, theirs.PackDown, new(string), nil},
	} {
		if list.cipher != nil && !suiteNamed(*list.cipher).withMAC {
			continue
		}
		i := slices.IndexFunc(list.ours, func(name string) bool {
			return slices.Contains(list.theirs, name) && name != extInfoClient && name != strictClient
		})
		if i < 0 {
			return a, &ssh.AlgorithmNegotiationError{What: list.what, RequestedAlgorithms: list.theirs, SupportedAlgorithms: list.ours}
		}
		*list.to = list.ours[i]
	}
	return a, nil
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
	c.hostKeys = theirs.HostKey
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
