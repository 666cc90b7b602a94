// Package sshtest gives tests their servers: an in-process one that can misbehave in every phase,
// and private instances of the installed sshd. It is for tests only; both listen on loopback and
// end with the test.
package sshtest

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Server is an SSH server in this process. Set the fields, then Start it.
type Server struct {
	// Raw, when set, is given every accepted connection instead of SSH.
	Raw func(net.Conn)
	// Exec runs a command or a subsystem; it sends the exit status itself (Exit, Signal). nil
	// answers every command with exit status 0. The channel is closed after it.
	Exec func(s *Session)
	// Ask, when set, takes no keys and asks questions instead.
	Ask func(ssh.KeyboardInteractiveChallenge) error
	// Deny refuses every key.
	Deny bool
	// Hold, when set, is called before the answer to an authentication request.
	Hold func()
	// RefuseSession and RefuseExec answer with a refusal: of every session, and of commands alone.
	RefuseSession, RefuseExec bool
	// IgnoreSession and IgnoreExec do not answer at all; keepalive requests are answered.
	IgnoreSession, IgnoreExec bool
	// ForwardError, when set, is the answer of a jump host to every request.
	ForwardError string

	HostKey      ssh.Signer // made by Start when nil
	KeyExchanges []string   // curve25519-sha256 when nil
	Ciphers      []string   // x/crypto's own when nil
	MACs         []string   // the same

	listener net.Listener
	mu       sync.Mutex
	conns    map[net.Conn]bool
	accepted int
	done     sync.WaitGroup
}

// Session is one running command.
type Session struct {
	ssh.Channel
	Command string
	Signals chan string // names of the signals that were asked for
	Conn    net.Conn    // below, to cut it
}

// Exit tells the client an exit status.
func (s *Session) Exit(code uint32) {
	s.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{code}))
}

// Signal tells the client that a signal ended the command.
func (s *Session) Signal(name string) {
	s.SendRequest("exit-signal", false, ssh.Marshal(struct {
		Name    string
		Core    bool
		Message string
		Lang    string
	}{Name: name}))
}

// Start listens on every loopback address, at a free port, until the test ends.
func (s *Server) Start(t testing.TB) *Server {
	t.Helper()
	if s.HostKey == nil {
		s.HostKey = NewKey(t)
	}
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	s.listener, s.conns = l, make(map[net.Conn]bool)
	s.done.Go(s.accept)
	t.Cleanup(s.Close)
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.listener.Close()
	s.mu.Lock()
	for c := range s.conns {
		c.Close()
	}
	s.mu.Unlock()
	s.done.Wait()
}

// Port is where the server listens, at every address in 127.0.0.0/8.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// Open is how many connections there are.
func (s *Server) Open() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.conns) }

// Accepted is how many connections came.
func (s *Server) Accepted() int { s.mu.Lock(); defer s.mu.Unlock(); return s.accepted }

func (s *Server) accept() {
	config := s.config()
	for {
		c, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		if !c.RemoteAddr().(*net.TCPAddr).IP.IsLoopback() {
			c.Close()
			continue
		}
		s.mu.Lock()
		s.conns[c] = true
		s.accepted++
		s.mu.Unlock()
		s.done.Go(func() { s.serve(c, config) })
	}
}

func (s *Server) config() *ssh.ServerConfig {
	c := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			if s.Hold != nil {
				s.Hold()
			}
			if s.Deny {
				return nil, errors.New("denied")
			}
			return nil, nil
		},
	}
	if s.Ask != nil {
		c.PublicKeyCallback = nil
		c.KeyboardInteractiveCallback = func(_ ssh.ConnMetadata, client ssh.KeyboardInteractiveChallenge) (*ssh.Permissions, error) {
			return nil, s.Ask(client)
		}
	}
	c.KeyExchanges = []string{"curve25519-sha256"}
	if len(s.KeyExchanges) > 0 {
		c.KeyExchanges = s.KeyExchanges
	}
	c.Ciphers, c.MACs = s.Ciphers, s.MACs
	c.AddHostKey(s.HostKey)
	return c
}

func (s *Server) serve(c net.Conn, config *ssh.ServerConfig) {
	defer func() {
		c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	if s.Raw != nil {
		s.Raw(c)
		return
	}
	conn, chans, reqs, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(reqs)
	var sessions sync.WaitGroup
	for ch := range chans {
		switch {
		case ch.ChannelType() == "direct-tcpip" && s.ForwardError != "":
			ch.Reject(ssh.ConnectionFailed, s.ForwardError)
		case ch.ChannelType() == "direct-tcpip":
			sessions.Go(func() { forward(ch) })
		case s.IgnoreSession:
		case s.RefuseSession || ch.ChannelType() != "session":
			ch.Reject(ssh.Prohibited, "no")
		default:
			sessions.Go(func() { s.session(ch, c) })
		}
	}
	sessions.Wait()
}

func (s *Server) session(nc ssh.NewChannel, c net.Conn) {
	ch, reqs, err := nc.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	sess := &Session{Channel: ch, Signals: make(chan string, 16), Conn: c}
	var running sync.WaitGroup
	defer running.Wait()
	defer ch.Close()
	for req := range reqs {
		switch req.Type {
		case "exec", "subsystem":
			if s.IgnoreExec {
				continue
			}
			refused := s.RefuseExec && req.Type == "exec"
			if req.Reply(!refused, nil); refused {
				continue
			}
			var m struct{ Command string }
			ssh.Unmarshal(req.Payload, &m)
			sess.Command = m.Command
			running.Go(func() { s.exec(sess); ch.Close() })
		case "signal":
			var m struct{ Name string }
			ssh.Unmarshal(req.Payload, &m)
			req.Reply(true, nil)
			select {
			case sess.Signals <- m.Name:
			default:
			}
		default:
			req.Reply(false, nil)
		}
	}
	close(sess.Signals)
}

func (s *Server) exec(sess *Session) {
	if s.Exec == nil {
		sess.Exit(0)
		return
	}
	s.Exec(sess)
}

// forward serves a jump host's direct-tcpip channel (RFC 4254 section 7.2).
func forward(nc ssh.NewChannel) {
	var m struct {
		Host     string
		Port     uint32
		FromHost string
		FromPort uint32
	}
	if ssh.Unmarshal(nc.ExtraData(), &m) != nil {
		nc.Reject(ssh.ConnectionFailed, "bad request")
		return
	}
	out, err := net.Dial("tcp", net.JoinHostPort(m.Host, fmt.Sprint(m.Port)))
	if err != nil {
		nc.Reject(ssh.ConnectionFailed, "Connection refused")
		return
	}
	ch, reqs, err := nc.Accept()
	if err != nil {
		out.Close()
		return
	}
	go ssh.DiscardRequests(reqs)
	var both sync.WaitGroup
	both.Go(func() { io.Copy(ch, out); ch.Close(); out.Close() })
	both.Go(func() { io.Copy(out, ch); ch.Close(); out.Close() })
	both.Wait()
}

// NewKey makes an Ed25519 key.
func NewKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// WriteKey makes an Ed25519 key in dir/name and dir/name.pub, encrypted when there is a passphrase,
// and returns its path and public half.
func WriteKey(t testing.TB, dir, name, passphrase string) (string, ssh.PublicKey) {
	t.Helper()
	pub, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var block *pem.Block
	if passphrase == "" {
		block, err = ssh.MarshalPrivateKey(private, "")
	} else {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(pub)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	write(t, path, string(pem.EncodeToMemory(block)))
	write(t, path+".pub", AuthorizedLine(public))
	return path, public
}

// AuthorizedLine is a line for authorized_keys.
func AuthorizedLine(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) + "\n"
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
