package sshtest

import (
	"errors"
	"net"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/programs/oldserver"
	"sshpace/internal/ssh/channel"
)

// Step is the point up to which a Peer follows the protocol.
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

// Hostile is a server that does everything right up to a step, and then whatever it likes, packet
// by packet. It accepts all logins.
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
	*oldserver.Conn
	End     <-chan struct{} // of the test
	Channel uint32          // the client's number of its first channel, from AtOpen on

	of     *Hostile
	opened uint32 // channels
}

// Start listens until the test ends.
func (h *Hostile) Start(t testing.TB) (port int) {
	t.Helper()
	if h.Version == "" {
		h.Version = "SSH-2.0-hostile"
	}
	h.reached = make(chan struct{})
	address := Answering(t, func(c net.Conn) {
		p := &Peer{Conn: &oldserver.Conn{Conn: c, Version: h.Version, HostKey: h.HostKey, Ciphers: []string{ssh.CipherAES128GCM}, MAC: ssh.HMACSHA256}, End: t.Context().Done(), of: h}
		_ = p.serve() // the client sees it
	})
	return address.Port
}

// Reached is closed when a client has first reached At.
func (h *Hostile) Reached() <-chan struct{} { return h.reached }

// errMisbehaved ends the correct part.
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
	anybody := func([]byte) bool { return true }
	for s, step := range []func() error{
		AtConnect: func() error { return nil }, AtVersion: p.Begin, AtKeys: p.Exchange, AtService: p.Service, AtLogin: func() error { return p.Login(anybody) },
	} {
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

// Message numbers (RFC 4250 section 4.1).
const (
	MsgIgnore        = 2
	MsgNewKeys       = 21
	MsgLoginSuccess  = 52
	MsgBanner        = 53
	MsgGlobalRequest = 80
	MsgGlobalSuccess = 81
	msgGlobalFailure = 82
	MsgOpen          = 90
	MsgOpened        = 91
	MsgWindow        = 93
	MsgData          = 94
	MsgEOF           = 96
	MsgClose         = 97
	MsgRequest       = 98
	MsgSuccess       = 99
	MsgFailure       = 100
)

// Message is a message of a number and numbers behind it.
func Message(kind byte, numbers ...uint32) []byte {
	m := []byte{kind}
	for _, n := range numbers {
		m = channel.AppendNumber(m, n)
	}
	return m
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
