// Package wire speaks the SSH protocol itself: a probe that reads what a server
// offers, and a client and a server on golang.org/x/crypto/ssh that can stand
// in for OpenSSH's in a measurement.
package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/channel"
)

// clientVersion identifies us to servers (RFC 4253 §4.2).
const clientVersion = "SSH-2.0-sshpace"

// Greeting is what a server says before anything is negotiated.
type Greeting struct {
	Version   string // its version line, such as "SSH-2.0-OpenSSH_9.2p1"
	Offer     alg.Offer
	StrictKex bool // knows the remedy for Terrapin (CVE-2023-48795)
}

// limits of a greeting, against hostile servers.
const (
	maxGreetingLines = 64
	maxVersionLine   = 4096
)

const msgKexInit = 20 // RFC 4253 §12

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
	in := bufio.NewReaderSize(conn, maxVersionLine)
	version, err := readVersion(in)
	if err != nil {
		return Greeting{}, err
	}
	payload, err := readPacket(in)
	if err != nil {
		return Greeting{Version: version}, err
	}
	g, err := parseKexInit(payload)
	g.Version = version
	return g, err
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

// readVersion skips the lines that a server may send first (RFC 4253 §4.2).
func readVersion(in *bufio.Reader) (string, error) {
	for range maxGreetingLines {
		line, err := in.ReadSlice('\n')
		if err == io.EOF {
			return "", errors.New("the server hung up before its version line")
		}
		if err != nil {
			return "", fmt.Errorf("read version line: %w", err)
		}
		if text := strings.TrimRight(string(line), "\r\n"); strings.HasPrefix(text, "SSH-") {
			return text, nil
		}
	}
	return "", fmt.Errorf("no SSH version line in the first %d lines", maxGreetingLines)
}

// readPacket reads one unencrypted packet (RFC 4253 §6).
func readPacket(in io.Reader) ([]byte, error) {
	var header [5]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	length, padding := binary.BigEndian.Uint32(header[:]), uint32(header[4])
	if length < padding+2 || length > channel.MaxMessage {
		return nil, fmt.Errorf("read KEXINIT: packet of %d bytes with %d of padding", length, padding)
	}
	body := make([]byte, length-1)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	return body[:length-1-padding], nil
}

// parseKexInit reads the name lists of a KEXINIT (RFC 4253 §7.1): message,
// cookie of 16 bytes, kex, host keys, then pairs for each direction.
func parseKexInit(payload []byte) (Greeting, error) {
	if len(payload) < 17 || payload[0] != msgKexInit {
		return Greeting{}, errors.New("the server's first packet is no KEXINIT")
	}
	rest := payload[17:]
	var lists [6][]string
	for i := range lists {
		if len(rest) < 4 {
			return Greeting{}, errors.New("KEXINIT is cut off")
		}
		length := binary.BigEndian.Uint32(rest)
		if rest = rest[4:]; uint64(length) > uint64(len(rest)) {
			return Greeting{}, errors.New("KEXINIT is cut off")
		}
		if length > 0 {
			lists[i] = strings.Split(string(rest[:length]), ",")
		}
		rest = rest[length:]
	}
	g := Greeting{Offer: alg.Offer{Kex: lists[0], HostKeys: lists[1], Ciphers: lists[2], MACs: lists[4]}}
	for _, name := range g.Offer.Kex {
		g.StrictKex = g.StrictKex || name == "kex-strict-s-v00@openssh.com" || name == "kex-strict-c-v00@openssh.com"
	}
	return g, nil
}
