package transport

import (
	"crypto/rand"
	"slices"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

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

// Theirs returns the algorithms that the server has; empty before its KEXINIT.
func (c *Conn) Theirs() *KexInit { return &c.theirs }

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
