package hostkeys

import (
	"crypto/ed25519"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/sys/tcp"
)

// benchServer is an SSH server on loopback that accepts every login and runs nothing: its only
// purpose is that ssh can log in.
type benchServer struct {
	listener net.Listener
	config   *ssh.ServerConfig
	hostKey  ssh.PublicKey
	handlers sync.WaitGroup
}

// startBenchServer starts an SSH server on loopback that lets everybody in.
func startBenchServer() (*benchServer, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		return nil, err
	}
	listener, err := tcp.ListenOwn()
	if err != nil {
		return nil, err
	}
	s := &benchServer{listener: listener, config: &ssh.ServerConfig{NoClientAuth: true}, hostKey: signer.PublicKey()}
	s.config.AddHostKey(signer)
	s.handlers.Go(s.accept)
	return s, nil
}

func (s *benchServer) port() uint16 { return uint16(s.listener.Addr().(*net.TCPAddr).Port) }

// Close ends the server once its connections have ended.
func (s *benchServer) Close() error {
	err := s.listener.Close()
	s.handlers.Wait()
	return err
}

func (s *benchServer) accept() {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.handlers.Go(func() { s.serve(conn) })
	}
}

// serve accepts one client, and announces the host keys as sshd does (PROTOCOL 2.5,
// hostkeys-00@openssh.com), which makes the client look for them in its file. It answers every
// command with success.
func (s *benchServer) serve(conn net.Conn) {
	defer conn.Close()
	client, channels, requests, err := ssh.NewServerConn(conn, s.config)
	if err != nil {
		return
	}
	defer client.Close()
	go ssh.DiscardRequests(requests)
	keys := ssh.Marshal(struct{ Key []byte }{s.hostKey.Marshal()})
	if _, _, err := client.SendRequest("hostkeys-00@openssh.com", false, keys); err != nil {
		return
	}
	for offered := range channels {
		if channel, inside, err := offered.Accept(); err == nil {
			go succeed(channel, inside)
		}
	}
}

// succeed ends a session at its first command, with exit status 0.
func succeed(channel ssh.Channel, requests <-chan *ssh.Request) {
	for r := range requests {
		if r.WantReply {
			r.Reply(r.Type == "exec", nil)
		}
		if r.Type == "exec" {
			channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			channel.Close()
		}
	}
}
