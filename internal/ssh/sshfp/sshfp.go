// Package sshfp asks the DNS for the fingerprints of host keys (SSHFP, RFC 4255), and trusts no
// answer more than ssh does with VerifyHostKeyDNS.
package sshfp

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/net/dns/dnsmessage"

	"sshpace/internal/sys/file"
)

const (
	typeSSHFP = dnsmessage.Type(44)
	isSHA256  = 2 // the only digest that counts: SHA-1 is broken
)

// algorithmOf returns the number of the type of a key; 0 for another one.
func algorithmOf(key ssh.PublicKey) byte {
	switch key.Type() {
	case ssh.KeyAlgoRSA:
		return 1
	case ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return 3
	case ssh.KeyAlgoED25519:
		return 4
	}
	return 0
}

// Answer holds the fingerprints that the DNS has of the keys of one host.
type Answer struct {
	Validated bool // by DNSSEC, and the resolver that has validated it is trusted
	records   [][]byte
}

// Of reports whether the answer has fingerprints of keys of that type, and whether all of them are
// the key's: ssh does not accept a key that one of them contradicts.
func (a *Answer) Of(key ssh.PublicKey) (has, matches bool) {
	sum := sha256.Sum256(key.Marshal())
	want := append([]byte{algorithmOf(key), isSHA256}, sum[:]...)
	for _, r := range a.records {
		if len(r) == len(want) && want[0] != 0 && bytes.Equal(r[:2], want[:2]) {
			matches = bytes.Equal(r, want) && (matches || !has)
			has = true
		}
	}
	return has, matches
}

// Resolver asks name servers.
type Resolver struct {
	Servers []netip.AddrPort
	Trusted bool // the AD flag of their answers counts
}

// System returns the resolver of resolv.conf(5). Its answers count as validated only with the
// option trust-ad, without which glibc hides the flag from ssh.
func System(getenv func(string) string) Resolver {
	text, _ := file.ReadFile("/etc/resolv.conf", 1<<20)
	return read(string(text), getenv("RES_OPTIONS"))
}

func read(text, options string) Resolver {
	r := Resolver{Trusted: slices.Contains(strings.Fields(options), "trust-ad")}
	for line := range strings.Lines(text) {
		switch fields := strings.Fields(line); {
		case len(fields) < 2:
		case fields[0] == "nameserver":
			if addr, err := netip.ParseAddr(fields[1]); err == nil {
				r.Servers = append(r.Servers, netip.AddrPortFrom(addr, 53))
			}
		case fields[0] == "options":
			r.Trusted = r.Trusted || slices.Contains(fields[1:], "trust-ad")
		}
	}
	if len(r.Servers) == 0 {
		r.Servers = []netip.AddrPort{netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 53)}
	}
	return r
}

// Times of one question, as glibc has them.
const (
	patience = 5 * time.Second
	rounds   = 2
)

// Lookup asks for the records of a host, under its full name as ssh does. An address has none.
func (r Resolver) Lookup(ctx context.Context, name string) (*Answer, error) {
	if _, err := netip.ParseAddr(name); err == nil {
		return &Answer{}, nil
	}
	asked, err := dnsmessage.NewName(strings.TrimSuffix(name, ".") + ".")
	if err != nil {
		return nil, err
	}
	question := dnsmessage.Question{Name: asked, Type: typeSSHFP, Class: dnsmessage.ClassINET}
	for range rounds {
		for _, server := range r.Servers {
			var a *Answer
			if a, err = ask(ctx, server, question); err == nil {
				a.Validated = a.Validated && r.Trusted
				return a, nil
			}
		}
	}
	return nil, fmt.Errorf("look up SSHFP of %s: %w", name, err)
}

// ask asks one server, over TCP where the answer does not fit into a packet.
func ask(ctx context.Context, server netip.AddrPort, q dnsmessage.Question) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a, err := askOver(ctx, "udp", server, q)
	if errors.Is(err, errTruncated) {
		return askOver(ctx, "tcp", server, q)
	}
	return a, err
}

var (
	errTruncated = errors.New("truncated")
	errForeign   = errors.New("not the answer to the question")
)

func askOver(ctx context.Context, network string, server netip.AddrPort, q dnsmessage.Question) (*Answer, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	id := uint16(rand.Uint32())
	packet, err := pack(id, q)
	if err != nil {
		return nil, err
	}
	if network == "tcp" {
		packet = append(binary.BigEndian.AppendUint16(nil, uint16(len(packet))), packet...)
	}
	if _, err := conn.Write(packet); err != nil {
		return nil, err
	}
	for {
		got, err := receive(conn, network)
		if err != nil {
			if ctx.Err() != nil {
				err = errors.New("no answer")
			}
			return nil, err
		}
		if a, err := parse(got, id, q); err != errForeign || network == "tcp" {
			return a, err
		}
	}
}

func receive(conn net.Conn, network string) ([]byte, error) {
	size := uint16(maxPacket)
	if network == "tcp" {
		if err := binary.Read(conn, binary.BigEndian, &size); err != nil {
			return nil, err
		}
	}
	b := make([]byte, size)
	if network == "tcp" {
		_, err := io.ReadFull(conn, b)
		return b, err
	}
	n, err := conn.Read(b)
	return b[:n], err
}

// maxPacket is the largest answer over UDP to a query without EDNS, in bytes.
const maxPacket = 512

// pack makes a query that also asks whether the answer is validated (flag AD).
func pack(id uint16, q dnsmessage.Question) ([]byte, error) {
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true, AuthenticData: true},
		Questions: []dnsmessage.Question{q},
	}
	return m.Pack()
}

func parse(packet []byte, id uint16, q dnsmessage.Question) (*Answer, error) {
	var p dnsmessage.Parser
	h, err := p.Start(packet)
	if err != nil || h.ID != id || !h.Response {
		return nil, errForeign
	}
	asked, err := p.AllQuestions()
	if err != nil || len(asked) != 1 || asked[0].Type != q.Type || asked[0].Class != q.Class ||
		!strings.EqualFold(asked[0].Name.String(), q.Name.String()) {
		return nil, errForeign
	}
	switch {
	case h.Truncated:
		return nil, errTruncated
	case h.RCode != dnsmessage.RCodeSuccess && h.RCode != dnsmessage.RCodeNameError:
		return nil, fmt.Errorf("the name server answers %s", strings.TrimPrefix(h.RCode.String(), "RCode"))
	}
	a := &Answer{Validated: h.AuthenticData}
	for {
		rr, err := p.Answer()
		if err == dnsmessage.ErrSectionDone {
			return a, nil
		}
		if err != nil {
			return nil, err
		}
		if body, ok := rr.Body.(*dnsmessage.UnknownResource); ok && body.Type == typeSSHFP {
			a.records = append(a.records, body.Data)
		}
	}
}
