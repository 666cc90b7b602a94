// Package wire speaks the SSH protocol itself: a probe that reads a server's offer, and a client on
// package transport and a server on golang.org/x/crypto/ssh that can replace OpenSSH's in a
// measurement.
package wire

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/tcp"
)

// Greeting is a server's text before anything is negotiated.
type Greeting struct {
	Version   string // its version line, such as "SSH-2.0-OpenSSH_9.2p1"
	Offer     alg.Offer
	StrictKex bool // knows the remedy for Terrapin (CVE-2023-48795)
}

// Probe connects to address and reads the server's version line and KEXINIT, then closes the
// connection: no login is tried, so none fails. Servers of OpenSSH 9.8 and later remember
// connections without a login (PerSourcePenalties); probe a host once, not in a loop.
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
	if _, err := io.WriteString(conn, transport.Version+"\r\n"); err != nil {
		return Greeting{}, err
	}
	version, lists, err := transport.ReadGreeting(conn)
	if err != nil {
		return Greeting{Version: version}, err
	}
	offer := alg.Offer{Kex: lists.Kex, HostKeys: lists.HostKey, Ciphers: lists.CipherUp, MACs: lists.MACUp}
	return Greeting{version, offer, lists.Strict()}, nil
}

// afterwards is how long the text of a client that is gone may still be in flight.
const afterwards = time.Second

// AwaitGreeting returns a client's text before anything is negotiated, for which it has limit, on a
// port of ours that then closes. client leads it there, and returns its error: that is the error if
// it has not greeted.
func AwaitGreeting(ctx context.Context, limit time.Duration, client func(ctx context.Context, host, port string) error) (g Greeting, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	l, err := tcp.ListenOwn()
	if err != nil {
		return g, err
	}
	defer l.Close()
	heard := make(chan error, 1)
	go func() {
		var err error
		g, err = accept(ctx, l)
		heard <- err
	}()
	host, port, _ := net.SplitHostPort(l.Addr().String())
	said := client(ctx, host, port)
	defer time.AfterFunc(afterwards, cancel).Stop()
	if err := <-heard; err != nil {
		return Greeting{}, cmp.Or(said, err)
	}
	return g, nil
}

// accept reads the first text of one client.
func accept(ctx context.Context, l net.Listener) (Greeting, error) {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	conn, err := l.Accept()
	if err != nil {
		return Greeting{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	return readGreeting(conn)
}
