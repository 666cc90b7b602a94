// Package wire speaks the SSH protocol itself: a probe that reads what a server
// offers, and a client and a server on golang.org/x/crypto/ssh that can stand
// in for OpenSSH's in a measurement.
package wire

import (
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/transport"
)

// clientVersion identifies us to servers (RFC 4253 §4.2).
const clientVersion = "SSH-2.0-sshpace"

// Greeting is what a server says before anything is negotiated.
type Greeting struct {
	Version   string // its version line, such as "SSH-2.0-OpenSSH_9.2p1"
	Offer     alg.Offer
	StrictKex bool // knows the remedy for Terrapin (CVE-2023-48795)
}

// Probe connects to address and reads the server's version line and KEXINIT,
// then hangs up: no login is tried, so none fails. Servers of OpenSSH 9.8 and
// later remember connections without a login (PerSourcePenalties); probe a host
// once, not in a loop.
func Probe(ctx context.Context, address string) (Greeting, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return Greeting{}, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	g, err := readGreeting(conn)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return g, fmt.Errorf("probe %s: %w", address, err)
	}
	return g, nil
}

// readGreeting exchanges version lines on conn and reads the peer's KEXINIT.
func readGreeting(conn io.ReadWriter) (Greeting, error) {
	if _, err := io.WriteString(conn, clientVersion+"\r\n"); err != nil {
		return Greeting{}, err
	}
	version, lists, err := transport.ReadGreeting(conn)
	if err != nil {
		return Greeting{Version: version}, err
	}
	offer := alg.Offer{Kex: lists.Kex, HostKeys: lists.HostKey, Ciphers: lists.CipherUp, MACs: lists.MACUp}
	return Greeting{version, offer, lists.Strict()}, nil
}

// AwaitGreeting accepts one connection and reads what the client says before
// anything is negotiated, then hangs up. It ends with ctx.
func AwaitGreeting(ctx context.Context, l net.Listener) (Greeting, error) {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	conn, err := l.Accept()
	if err != nil {
		return Greeting{}, err
	}
	defer conn.Close()
	stopRead := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stopRead()
	return readGreeting(conn)
}
