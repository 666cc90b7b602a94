// Package oldserver is an SSH server for Blowfish and CAST-128 only, which no server has any more:
// so that the ciphers of old articles can be measured again, on loopback, with keys of one run. One
// connection, one key, one session with one command; no rekeying, because a run moves less than a
// gigabyte.
package oldserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/unit"
)

const (
	msgUserauthRequest = 50
	msgUserauthFailure = 51
	msgUserauthSuccess = 52
	msgUserauthPKOK    = 60
	msgChannelOpen     = 90
	msgChannelConfirm  = 91
	msgWindowAdjust    = 93
	msgChannelData     = 94
	msgChannelEOF      = 96
	msgChannelClose    = 97
	msgChannelRequest  = 98
	msgChannelSuccess  = 99
	msgChannelFailure  = 100
)

// window is as much as OpenSSH grants.
const window = uint32(unit.ChannelWindow)

// ServeOne serves the connection on socket. Only the authorized key may log in; the command is run
// by /bin/sh with HOME set to home.
func ServeOne(socket *os.File, hostKey ssh.Signer, authorized ssh.PublicKey, home string) error {
	raw, err := net.FileConn(socket)
	if err != nil {
		return err
	}
	defer raw.Close()
	socket.Close()
	c := &Conn{Conn: raw, Version: "SSH-2.0-sshpace-old", HostKey: hostKey, Ciphers: []string{"blowfish-cbc", "cast128-cbc"}, MAC: ssh.HMACSHA1}
	permits := func(key []byte) bool { return bytes.Equal(key, authorized.Marshal()) }
	for _, step := range []func() error{c.Begin, c.Exchange, c.Service, func() error { return c.Login(permits) }} {
		if err := step(); err != nil {
			return err
		}
	}
	return c.serve(home)
}

// Service accepts the service of logins.
func (c *Conn) Service() error {
	if _, err := c.expect(msgServiceReq); err != nil {
		return err
	}
	return c.Send(ssh.Marshal(&struct {
		Name string `sshtype:"6"`
	}{"ssh-userauth"}))
}

// Login accepts a login with a permitted key (RFC 4252 section 7).
func (c *Conn) Login(permits func(key []byte) bool) error {
	for range 20 {
		p, err := c.expect(msgUserauthRequest)
		if err != nil {
			return err
		}
		done, err := c.attempt(p, permits)
		if done || err != nil {
			return err
		}
	}
	return errors.New("no login after 20 attempts")
}

// attempt answers one request; done is a login.
func (c *Conn) attempt(p []byte, permits func(key []byte) bool) (done bool, err error) {
	var r struct {
		User, Service, Method string `sshtype:"50"`
		Rest                  []byte `ssh:"rest"`
	}
	var k struct {
		Signed    bool
		Algorithm string
		Key       []byte
		Rest      []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(p, &r); err != nil {
		return false, err
	}
	if r.Method != "publickey" || ssh.Unmarshal(r.Rest, &k) != nil || !permits(k.Key) {
		return false, c.Send(ssh.Marshal(&struct {
			Methods []string `sshtype:"51"`
			Partial bool
		}{[]string{"publickey"}, false}))
	}
	if !k.Signed {
		return false, c.Send(ssh.Marshal(&struct {
			Algorithm string `sshtype:"60"`
			Key       []byte
		}{k.Algorithm, k.Key}))
	}
	var outer struct{ Blob []byte }
	var signature ssh.Signature
	if err := errors.Join(ssh.Unmarshal(k.Rest, &outer), ssh.Unmarshal(outer.Blob, &signature)); err != nil {
		return false, err
	}
	said := append(ssh.Marshal(&struct{ Session []byte }{c.session}), p[:len(p)-len(k.Rest)]...)
	key, err := ssh.ParsePublicKey(k.Key)
	if err == nil {
		err = key.Verify(said, &signature)
	}
	if err != nil {
		return false, err
	}
	return true, c.Send([]byte{msgUserauthSuccess})
}

// serve runs the command of the one session.
func (c *Conn) serve(home string) error {
	peer, err := c.open()
	if err != nil {
		return err
	}
	var cmd *exec.Cmd
	var in io.WriteCloser
	var outputs sync.WaitGroup
	for {
		p, err := c.Receive()
		if err != nil {
			if cmd != nil {
				in.Close()
				outputs.Wait()
			}
			return err
		}
		switch p[0] {
		case msgChannelRequest:
			if cmd, in, err = c.request(p, peer, home, cmd, in, &outputs); err != nil {
				return err
			}
		case msgChannelData:
			if in == nil || len(p) < 9 {
				return errPacket
			}
			if _, err := in.Write(p[9:]); err != nil {
				return err
			}
			if err := c.Send(ssh.Marshal(&struct {
				Peer, Bytes uint32 `sshtype:"93"`
			}{peer, uint32(len(p) - 9)})); err != nil {
				return err
			}
		case msgChannelEOF:
			if in != nil {
				in.Close()
			}
		case msgChannelClose:
			outputs.Wait()
			return nil
		}
	}
}

// open accepts the session channel, and returns the client's number of it.
func (c *Conn) open() (peer uint32, err error) {
	p, err := c.expect(msgChannelOpen)
	if err != nil {
		return 0, err
	}
	var m struct {
		Type               string `sshtype:"90"`
		Peer, Window, Most uint32
		Rest               []byte `ssh:"rest"`
	}
	if err := ssh.Unmarshal(p, &m); err != nil {
		return 0, err
	}
	return m.Peer, c.Send(ssh.Marshal(&struct {
		Peer, Ours, Window, Most uint32 `sshtype:"91"`
	}{m.Peer, 0, window, 32 << 10}))
}

// request starts the command of an exec request, and returns it with its input; all other requests
// are refused.
func (c *Conn) request(p []byte, peer uint32, home string, cmd *exec.Cmd, in io.WriteCloser, outputs *sync.WaitGroup) (*exec.Cmd, io.WriteCloser, error) {
	var m struct {
		Ours  uint32 `sshtype:"98"`
		Type  string
		Reply bool
		Rest  []byte `ssh:"rest"`
	}
	var command struct{ Line string }
	if err := ssh.Unmarshal(p, &m); err != nil {
		return cmd, in, err
	}
	number := byte(msgChannelFailure)
	if m.Type == "exec" && cmd == nil && ssh.Unmarshal(m.Rest, &command) == nil {
		number = msgChannelSuccess
	}
	if m.Reply {
		if err := c.Send(ssh.Marshal(&struct {
			Number byte
			Peer   uint32
		}{number, peer})); err != nil || number == msgChannelFailure {
			return cmd, in, err
		}
	}
	cmd = exec.Command("/bin/sh", "-c", command.Line)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	cmd.Stdout = &channel{c, peer}
	cmd.Stderr = io.Discard
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return cmd, in, err
	}
	outputs.Go(func() { c.conclude(cmd, peer) })
	return cmd, in, nil
}

// conclude waits for the command and sends its exit status.
func (c *Conn) conclude(cmd *exec.Cmd, peer uint32) {
	_ = cmd.Wait()
	status := struct {
		Peer  uint32 `sshtype:"98"`
		Type  string
		Reply bool
		Code  uint32
	}{peer, "exit-status", false, uint32(max(0, cmd.ProcessState.ExitCode()))}
	for _, message := range [][]byte{ssh.Marshal(&status), numbered(msgChannelEOF, peer), numbered(msgChannelClose, peer)} {
		if c.Send(message) != nil {
			return
		}
	}
}

func numbered(number byte, peer uint32) []byte {
	return ssh.Marshal(&struct {
		Number byte
		Peer   uint32
	}{number, peer})
}

// channel carries the output of a command, which may be no more than the client's window.
type channel struct {
	c    *Conn
	peer uint32
}

func (w *channel) Write(p []byte) (int, error) {
	const most = 16 << 10
	for from := 0; from < len(p); from += most {
		part := p[from:min(len(p), from+most)]
		if err := w.c.Send(ssh.Marshal(&struct {
			Peer uint32 `sshtype:"94"`
			Data []byte
		}{w.peer, part})); err != nil {
			return 0, fmt.Errorf("print: %w", err)
		}
	}
	return len(p), nil
}
