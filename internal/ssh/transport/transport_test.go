package transport_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/ssh/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is x/crypto's server at the other end of a connection; it answers every command with its own
// words and what comes by standard input.
type peer struct {
	config  ssh.ServerConfig
	hostKey ssh.Signer
	user    ssh.Signer
	done    sync.WaitGroup
}

func newPeer(t testing.TB) *peer {
	p := &peer{hostKey: sshtest.NewKey(t), user: sshtest.NewKey(t)}
	p.config.AddHostKey(p.hostKey)
	p.config.PublicKeyCallback = func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), p.user.PublicKey().Marshal()) {
			return nil, errors.New("no")
		}
		return nil, nil
	}
	t.Cleanup(p.done.Wait)
	return p
}

// connect is a connection to the peer, which wrap may tamper with.
func (p *peer) connect(t testing.TB, wrap func(net.Conn) net.Conn) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.done.Go(func() {
		c, err := l.Accept()
		l.Close() // not before: it would reset what waits to be accepted
		if err == nil {
			p.serve(wrap(c))
		}
	})
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func untouched(c net.Conn) net.Conn { return c }

func (p *peer) serve(c net.Conn) {
	defer c.Close()
	conn, chans, reqs, err := ssh.NewServerConn(c, &p.config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(reqs)
	for nc := range chans {
		ch, reqs, err := nc.Accept()
		if err != nil {
			return
		}
		for r := range reqs {
			r.Reply(r.Type == "exec", nil)
			if r.Type == "exec" {
				go func() {
					ch.Write(r.Payload[4:])
					io.Copy(ch, ch)
					ch.Close()
				}()
			}
		}
	}
}

func (p *peer) client() *transport.Config {
	return &transport.Config{Version: "SSH-2.0-test", HostKeys: []string{ssh.KeyAlgoED25519}, HostKey: func(key ssh.PublicKey) error {
		if !bytes.Equal(key.Marshal(), p.hostKey.PublicKey().Marshal()) {
			return errors.New("host key changed")
		}
		return nil
	}}
}

func algorithmSigner(t testing.TB, s ssh.Signer, names ...string) ssh.MultiAlgorithmSigner {
	t.Helper()
	m, err := ssh.NewSignerWithAlgorithms(s.(ssh.AlgorithmSigner), names)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (p *peer) login(t testing.TB) transport.Login {
	return transport.Login{User: "tester", Direct: true, Keys: []ssh.MultiAlgorithmSigner{algorithmSigner(t, p.user, ssh.KeyAlgoED25519)}}
}

// echo runs a command with input on a connection that is logged in, and checks that both come back.
func echo(c *transport.Conn, input []byte) error {
	client := c.Mux("tester").Client()
	defer func() { client.Close(); client.Wait() }()
	s, err := client.NewSession()
	if err != nil {
		return err
	}
	s.Stdin = bytes.NewReader(input)
	out, err := s.Output("words")
	if missing := (*ssh.ExitMissingError)(nil); err != nil && !errors.As(err, &missing) {
		return err
	}
	if want := append([]byte("words"), input...); !bytes.Equal(out, want) {
		return fmt.Errorf("%d bytes came back, want %d", len(out), len(want))
	}
	return nil
}

// whole is handshake, login and command.
func whole(c net.Conn, config *transport.Config, l transport.Login, input []byte) error {
	defer c.Close()
	conn, err := transport.Handshake(c, config)
	if err != nil {
		return err
	}
	if err := conn.Authenticate(l); err != nil {
		return err
	}
	return echo(conn, input)
}

// one is a peer and a client that have one algorithm of a kind, or as usual.
func one(t *testing.T, kex, cipher, mac string) (*peer, *transport.Config) {
	p := newPeer(t)
	config := p.client()
	for _, list := range []struct {
		name         string
		ours, theirs *[]string
	}{{kex, &config.KeyExchanges, &p.config.KeyExchanges}, {cipher, &config.Ciphers, &p.config.Ciphers}, {mac, &config.MACs, &p.config.MACs}} {
		if list.name != "" {
			*list.ours, *list.theirs = []string{list.name}, []string{list.name}
		}
	}
	return p, config
}

// TestAlgorithms: every key exchange, every cipher and every MAC carries a command, whose input is
// long enough for all lengths of padding and for large packets.
func TestAlgorithms(t *testing.T) {
	kexes, ciphers, macs := transport.Algorithms()
	input := make([]byte, 300_000)
	rand.Read(input)
	carried := func(kex, cipher, mac string, input []byte) {
		p, config := one(t, kex, cipher, mac)
		if err := whole(p.connect(t, untouched), config, p.login(t), input); err != nil {
			t.Errorf("%q, %s, %q, %d bytes: %v", kex, cipher, mac, len(input), err)
		}
	}
	for i, kex := range kexes {
		carried(kex, ciphers[i%len(ciphers)], macs[i%len(macs)], input)
	}
	for _, cipher := range ciphers {
		for _, mac := range macs {
			carried("", cipher, mac, input)
		}
		for n := range 40 {
			carried("", cipher, macs[n%len(macs)], input[:n])
		}
	}
}

// TestNothingInCommon: what both sides lack is named, and nothing is agreed on that was not
// offered.
func TestNothingInCommon(t *testing.T) {
	for what, theirs := range map[string]ssh.Config{
		"key exchange":            {KeyExchanges: []string{"diffie-hellman-group14-sha1"}},
		"client to server cipher": {Ciphers: []string{"aes128-cbc"}},
		"client to server MAC":    {Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-sha1-96"}},
	} {
		p := newPeer(t)
		p.config.Config = theirs
		var none *ssh.AlgorithmNegotiationError
		if err := whole(p.connect(t, untouched), p.client(), p.login(t), nil); !errors.As(err, &none) || none.What != what {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestHostKeyAlgorithms: a server's key is taken in every form, and only for the algorithm that was
// agreed on.
func TestHostKeyAlgorithms(t *testing.T) {
	for _, names := range [][]string{{ssh.KeyAlgoED25519}, {ssh.KeyAlgoRSASHA512, ssh.KeyAlgoED25519}} {
		p := newPeer(t)
		config := p.client()
		config.HostKeys = names
		if err := whole(p.connect(t, untouched), config, p.login(t), nil); err != nil {
			t.Errorf("%s: %v", names, err)
		}
	}
	p := newPeer(t)
	config := p.client()
	config.HostKeys = []string{ssh.KeyAlgoRSASHA512}
	var none *ssh.AlgorithmNegotiationError
	if err := whole(p.connect(t, untouched), config, p.login(t), nil); !errors.As(err, &none) || none.What != "host key" {
		t.Errorf("no common host key algorithm: %v", err)
	}
}

// TestWrongHostKey: nothing of a login is sent to a server with another key.
func TestWrongHostKey(t *testing.T) {
	p, other := newPeer(t), newPeer(t)
	config := other.client()
	if err := whole(p.connect(t, untouched), config, p.login(t), nil); err == nil || err.Error() != "host key changed" {
		t.Errorf("got %v", err)
	}
}

// counting counts the key exchanges of a server.
type counting struct {
	ssh.Signer
	signed atomic.Int32
}

func (c *counting) Sign(r io.Reader, data []byte) (*ssh.Signature, error) {
	c.signed.Add(1)
	return c.Signer.Sign(r, data)
}

// TestRekey: keys are exchanged again whenever the server wants it, both ways full of data.
func TestRekey(t *testing.T) {
	for _, cipher := range []string{"aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"} {
		p := newPeer(t)
		p.config.RekeyThreshold = 100_000
		config := p.client()
		config.Ciphers = []string{cipher}
		counted := &counting{Signer: p.hostKey}
		p.config.AddHostKey(counted)
		if err := whole(p.connect(t, untouched), config, p.login(t), make([]byte, 3<<20)); err != nil {
			t.Errorf("%s: %v", cipher, err)
		}
		if n := counted.signed.Load(); n < 3 {
			t.Errorf("%s: keys were exchanged %d times", cipher, n)
		}
	}
}

// TestKeysInTurn: keys that are refused are followed by the next, with and without a first
// signature, and the reason names what could go on.
func TestKeysInTurn(t *testing.T) {
	for _, direct := range []bool{false, true} {
		p := newPeer(t)
		p.config.MaxAuthTries = 20
		l := p.login(t)
		l.Direct = direct
		good := l.Keys[0]
		l.Keys = nil
		for range 3 {
			l.Keys = append(l.Keys, algorithmSigner(t, sshtest.NewKey(t), ssh.KeyAlgoED25519))
		}
		var denied *transport.DeniedError
		if err := whole(p.connect(t, untouched), p.client(), l, nil); !errors.As(err, &denied) || !slices.Equal(denied.Methods, []string{"publickey"}) {
			t.Errorf("direct %v: %v", direct, err)
		}
		l.Keys = append(l.Keys, good)
		if err := whole(p.connect(t, untouched), p.client(), l, nil); err != nil {
			t.Errorf("direct %v: %v", direct, err)
		}
	}
	p := newPeer(t)
	var denied *transport.DeniedError
	if err := whole(p.connect(t, untouched), p.client(), transport.Login{User: "tester"}, nil); !errors.As(err, &denied) {
		t.Errorf("without keys: %v", err)
	}
}

// faulty ends a connection, or changes a byte, at a byte of one direction.
type faulty struct {
	net.Conn
	at   int // of what the server writes
	flip bool
}

func (f *faulty) Write(b []byte) (int, error) {
	defer func() { f.at -= len(b) }()
	if f.at < 0 || f.at >= len(b) {
		return f.Conn.Write(b)
	}
	if f.flip {
		b = bytes.Clone(b)
		b[f.at] ^= 0x40
		return f.Conn.Write(b)
	}
	f.Conn.Write(b[:f.at])
	f.Conn.Close()
	return f.at, io.ErrClosedPipe
}

// TestFaultAtEveryByte: a connection that ends after any byte of a login, or has any byte changed,
// ends in an error in time: no panic, no hang, no success with a changed key exchange.
func TestFaultAtEveryByte(t *testing.T) {
	p := newPeer(t)
	size := 0
	count := func(c net.Conn) net.Conn { return &counted{c, &size} }
	if err := whole(p.connect(t, count), p.client(), p.login(t), nil); err != nil {
		t.Fatal(err)
	}
	p.done.Wait()
	for _, flip := range []bool{false, true} {
		step, limit := 3, 2*time.Minute
		if flip { // it may wait
			step, limit = 7, 300*time.Millisecond
		}
		for at := 0; at < size-100; at += step {
			c := p.connect(t, func(c net.Conn) net.Conn { return &faulty{c, at, flip} })
			c.SetDeadline(time.Now().Add(limit))
			err := whole(c, p.client(), p.login(t), nil)
			if timeout := net.Error(nil); errors.As(err, &timeout) && timeout.Timeout() {
				if !flip { // a changed length makes both wait
					t.Fatalf("byte %d of %d, changed %v: hangs", at, size, flip)
				}
			} else if err == nil && !flip {
				t.Errorf("byte %d of %d, changed %v: no error", at, size, flip)
			}
		}
	}
}

type counted struct {
	net.Conn
	n *int
}

func (c *counted) Write(b []byte) (int, error) { *c.n += len(b); return c.Conn.Write(b) }

// inserter puts an IGNORE packet before the server's first packet, as the attack of CVE-2023-48795
// (Terrapin) does.
type inserter struct {
	net.Conn
	line bool
}

func (i *inserter) Write(b []byte) (int, error) {
	n := len(b)
	if !i.line {
		line, rest, _ := bytes.Cut(b, []byte("\n"))
		ignore := []byte{0, 0, 0, 12, 6, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		i.line = true
		b = slices.Concat(line, []byte("\n"), ignore, rest)
	}
	_, err := i.Conn.Write(b)
	return n, err
}

// TestStrict: with a server that speaks strict key exchange, a packet that was inserted before
// KEXINIT ends the connection.
func TestStrict(t *testing.T) {
	p := newPeer(t)
	err := whole(p.connect(t, func(c net.Conn) net.Conn { return &inserter{Conn: c} }), p.client(), p.login(t), nil)
	if err == nil || !strings.Contains(err.Error(), "strict") {
		t.Errorf("got %v", err)
	}
}

// fixed gives a server's bytes and swallows ours.
type fixed struct {
	net.Conn
	r io.Reader
}

func (f fixed) Read(p []byte) (int, error)  { return f.r.Read(p) }
func (f fixed) Write(p []byte) (int, error) { return len(p), nil }

// FuzzHandshake: whatever a server says, the client ends with an error and takes no more memory
// than a packet.
func FuzzHandshake(f *testing.F) {
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Add([]byte("hello\nSSH-2.0-x\r\n\x00\x00\x00\x0c\x0a\x14"))
	f.Add([]byte("SSH-2.0-x\r\n\xff\xff\xff\xff"))
	p := newPeer(f)
	var recorded bytes.Buffer
	c := p.connect(f, func(c net.Conn) net.Conn { return &recorder{c, &recorded} })
	_ = whole(c, p.client(), p.login(f), nil)
	p.done.Wait()
	f.Add(recorded.Bytes())
	f.Fuzz(func(t *testing.T, said []byte) {
		if _, err := transport.Handshake(fixed{r: bytes.NewReader(said)}, p.client()); err == nil {
			t.Error("a handshake that nobody has signed")
		}
	})
}

type recorder struct {
	net.Conn
	b *bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { r.b.Write(p); return r.Conn.Write(p) }
