package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/crypto/ssh"
)

// all returns every algorithm of x/crypto/ssh, insecure ones as well: the client chooses,
// connection by connection.
func all() ssh.Algorithms {
	secure, insecure := ssh.SupportedAlgorithms(), ssh.InsecureAlgorithms()
	return ssh.Algorithms{
		Ciphers:      append(secure.Ciphers, insecure.Ciphers...),
		MACs:         append(secure.MACs, insecure.MACs...),
		KeyExchanges: append(secure.KeyExchanges, insecure.KeyExchanges...),
	}
}

// ServeOne serves the connection on socket: the in-process replacement for `sshd -i`. Only the key
// in authorizedKeys may log in; commands run by /bin/sh with HOME set to home.
func ServeOne(socket *os.File, hostKey, authorizedKeys, home string) error {
	config, err := serverConfig(hostKey, authorizedKeys)
	if err != nil {
		return err
	}
	conn, err := net.FileConn(socket)
	if err != nil {
		return fmt.Errorf("connection on standard input: %w", err)
	}
	socket.Close()
	server, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return err
	}
	defer server.Close()
	go ssh.DiscardRequests(requests)
	var sessions sync.WaitGroup
	for channel := range channels {
		if channel.ChannelType() != "session" {
			_ = channel.Reject(ssh.UnknownChannelType, "only sessions")
			continue
		}
		session, requests, err := channel.Accept()
		if err != nil {
			return err
		}
		sessions.Go(func() { serveSession(session, requests, home) })
	}
	sessions.Wait()
	return nil
}

func serverConfig(hostKey, authorizedKeys string) (*ssh.ServerConfig, error) {
	signer, authorized, err := ReadKeys(hostKey, authorizedKeys)
	if err != nil {
		return nil, err
	}
	algorithms := all()
	config := &ssh.ServerConfig{
		Config:        ssh.Config{Ciphers: algorithms.Ciphers, MACs: algorithms.MACs, KeyExchanges: algorithms.KeyExchanges},
		ServerVersion: "SSH-2.0-sshpace-native",
		PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
			if string(key.Marshal()) != string(authorized.Marshal()) {
				return nil, errors.New("not the key of this run")
			}
			return nil, nil
		},
	}
	config.AddHostKey(signer)
	return config, nil
}

// ReadKeys reads a server's host key and the one key that may log in.
func ReadKeys(hostKey, authorizedKeys string) (host ssh.Signer, authorized ssh.PublicKey, err error) {
	keyText, err := os.ReadFile(hostKey)
	if err != nil {
		return nil, nil, err
	}
	if host, err = ssh.ParsePrivateKey(keyText); err != nil {
		return nil, nil, fmt.Errorf("host key: %w", err)
	}
	authorizedText, err := os.ReadFile(authorizedKeys)
	if err != nil {
		return nil, nil, err
	}
	if authorized, _, _, _, err = ssh.ParseAuthorizedKey(authorizedText); err != nil {
		return nil, nil, fmt.Errorf("authorized key: %w", err)
	}
	return host, authorized, nil
}

// serveSession runs the command of the first exec request.
func serveSession(session ssh.Channel, requests <-chan *ssh.Request, home string) {
	defer session.Close()
	for request := range requests {
		var command struct{ Line string }
		if request.Type != "exec" || ssh.Unmarshal(request.Payload, &command) != nil {
			_ = request.Reply(false, nil)
			continue
		}
		_ = request.Reply(true, nil)
		go ssh.DiscardRequests(requests)
		status := struct{ Code uint32 }{runCommand(session, command.Line, home)}
		_, _ = session.SendRequest("exit-status", false, ssh.Marshal(&status))
		return
	}
}

// runCommand connects the command to the channel by pipes, as sshd does.
func runCommand(session ssh.Channel, line, home string) (status uint32) {
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = session.Stderr()
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if err := errors.Join(inErr, outErr); err != nil || cmd.Start() != nil {
		return 126
	}
	go func() {
		_, _ = io.Copy(in, session)
		in.Close()
	}()
	_, _ = io.Copy(session, out)
	out.Close() // if the client is gone, the command must notice
	_ = cmd.Wait()
	return uint32(max(0, cmd.ProcessState.ExitCode()))
}
