//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"os/exec"

	"golang.org/x/crypto/ssh"
)

// asCheap is the first argument of this program where it is the server itself.
const asCheap = "as-cheap-server"

// cheapServer is the command that serves cheaply.
func (l *lab) cheapServer() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, asCheap, l.address(), l.path("host")), nil
}

// serveCheaply is a server that starts no process: it takes every key, and answers to
// every command with exit status 0. A login costs it a thirtieth of what it costs sshd, so
// that on loopback little of a client's time goes into caches that the server has used.
func serveCheaply(address, hostKey string) error {
	text, err := os.ReadFile(hostKey)
	if err != nil {
		return err
	}
	key, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return err
	}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(key)
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer c.Close()
			if err := serveOne(c, config); err != nil && !errors.Is(err, net.ErrClosed) {
				os.Stderr.WriteString(err.Error() + "\n")
			}
		}()
	}
}

func serveOne(c net.Conn, config *ssh.ServerConfig) error {
	conn, sessions, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return err
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for s := range sessions {
		channel, asked, err := s.Accept()
		if err != nil {
			return err
		}
		go succeed(channel, asked)
	}
	return nil
}

// succeed is exit status 0 for every command.
func succeed(channel ssh.Channel, asked <-chan *ssh.Request) {
	defer channel.Close()
	for r := range asked {
		command := r.Type == "exec"
		if r.WantReply && r.Reply(command, nil) != nil {
			return
		}
		if command {
			_, _ = channel.SendRequest("exit-status", false, make([]byte, 4))
			return
		}
	}
}
