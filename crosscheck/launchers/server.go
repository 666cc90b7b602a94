//go:build linux

package main

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/sys/tcp"
)

// fleet is one SSH server on all loopback addresses, each of them a host. It runs nothing: a
// command takes the time, and has the output and the exit status, that are drawn for its host. So
// it knows who ran something where, and how that ended.
type fleet struct {
	port     int
	key      string // of all hosts, as it stands in known_hosts
	seed     uint64
	draw     func(*rand.Rand) answer
	listener net.Listener

	mu    sync.Mutex
	hosts map[string]*host // that something was run on, by address
}

// answer is how a host answers its command.
type answer struct {
	after  time.Duration
	output string
	exit   int
}

func (a answer) String() string {
	return fmt.Sprintf("exit %d and %d bytes after %v", a.exit, len(a.output), a.after)
}

// host is all that a host saw.
type host struct {
	starts []start
	answer answer
	ended  time.Time // when the exit status was sent; zero: it was not
}

// start is a command that a launcher began; launchers log in under their own names.
type start struct {
	by string
	at time.Time
}

func (s start) String() string { return s.by + " at " + s.at.Format("05.000") }

// serve starts a fleet; the caller closes its listener.
func serve(seed uint64, draw func(*rand.Rand) answer) (*fleet, error) {
	signer, err := ssh.NewSignerFromKey(ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)))
	if err != nil {
		return nil, err
	}
	f := &fleet{seed: seed, draw: draw, hosts: map[string]*host{}, key: string(ssh.MarshalAuthorizedKey(signer.PublicKey()))}
	config := &ssh.ServerConfig{PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }}
	config.AddHostKey(signer)
	if f.listener, err = net.Listen("tcp4", ":0"); err != nil {
		return nil, err
	}
	f.port = f.listener.Addr().(*net.TCPAddr).Port
	go func() {
		for c := range tcp.Accepted(f.listener) {
			go f.connection(c, config)
		}
	}()
	return f, nil
}

func (f *fleet) connection(c net.Conn, config *ssh.ServerConfig) {
	defer c.Close()
	conn, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for channel := range channels {
		if session, requests, err := channel.Accept(); err == nil {
			go f.session(c.LocalAddr().(*net.TCPAddr).IP, conn.User(), session, requests)
		}
	}
}

// session answers the command of a session. A signal ends it.
func (f *fleet) session(address net.IP, user string, s ssh.Channel, requests <-chan *ssh.Request) {
	defer s.Close()
	var a answer
	end := time.NewTimer(math.MaxInt64)
	defer end.Stop()
	for {
		select {
		case r, open := <-requests:
			if !open {
				return
			}
			_ = r.Reply(r.Type == "exec", nil)
			switch r.Type {
			case "exec":
				a = f.draw(rand.New(rand.NewPCG(f.seed, uint64(binary.BigEndian.Uint32(address.To4())))))
				f.note(address, func(h *host) { h.answer, h.starts = a, append(h.starts, start{user, time.Now()}) })
				end.Reset(a.after)
			case "signal":
				_, _ = s.SendRequest("exit-signal", false, ssh.Marshal(struct {
					Name          string
					Core          bool
					Message, Lang string
				}{Name: "TERM"}))
				return
			}
		case <-end.C:
			_, _ = io.WriteString(s, a.output)
			f.note(address, func(h *host) { h.ended = time.Now() })
			_, _ = s.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(a.exit)}))
			return
		}
	}
}

// note changes all that is known of a host.
func (f *fleet) note(address net.IP, change func(*host)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hosts[address.String()]
	if h == nil {
		h = &host{}
		f.hosts[address.String()] = h
	}
	change(h)
}

// seen returns all that the hosts saw so far.
func (f *fleet) seen() map[string]host {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := map[string]host{}
	for address, h := range f.hosts {
		all[address] = *h
	}
	return all
}
