package wire

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/ssh/channel"
)

const msgKexInit = 20 // RFC 4253 section 12

// conversation is a server that says everything at once and listens to nothing.
type conversation struct {
	io.Reader
	io.Writer
}

func says(text []byte) io.ReadWriter { return conversation{bytes.NewReader(text), io.Discard} }

// nameList is an SSH name-list (RFC 4251 §5).
func nameList(names string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(names))), names...)
}

// kexInit is the payload of a KEXINIT with these ten lists.
func kexInit(lists ...string) []byte {
	payload := append([]byte{msgKexInit}, make([]byte, 16)...)
	for _, list := range lists {
		payload = append(payload, nameList(list)...)
	}
	return append(payload, 0, 0, 0, 0, 0)
}

var usualLists = []string{"curve25519-sha256,kex-strict-s-v00@openssh.com", "ssh-ed25519", "aes128-ctr,aes256-ctr", "x", "hmac-sha2-256", "y", "none", "none", "", ""}

// packet wraps a payload (RFC 4253 §6).
func packet(payload []byte) []byte {
	padding := 8 - (len(payload)+5)%8 + 8
	out := binary.BigEndian.AppendUint32(nil, uint32(len(payload)+padding+1))
	return append(append(append(out, byte(padding)), payload...), make([]byte, padding)...)
}

func greeting(version string) []byte {
	return append([]byte(version), packet(kexInit(usualLists...))...)
}

func TestReadGreeting(t *testing.T) {
	for name, text := range map[string][]byte{
		"plain":         greeting("SSH-2.0-X_1.0 comment\r\n"),
		"without CR":    greeting("SSH-2.0-X_1.0 comment\n"),
		"after a text":  greeting("Keep out!\r\n\r\nSSH is for friends\r\nSSH-2.0-X_1.0 comment\r\n"),
		"more to come":  append(greeting("SSH-2.0-X_1.0 comment\r\n"), "encrypted"...),
		"a long banner": greeting(strings.Repeat("line\r\n", 100) + "SSH-2.0-X_1.0 comment\r\n"),
	} {
		g, err := readGreeting(says(text))
		if err != nil || g.Version != "SSH-2.0-X_1.0 comment" || !g.StrictKex || !slices.Equal(g.Offer.Ciphers, []string{"aes128-ctr", "aes256-ctr"}) ||
			!slices.Equal(g.Offer.MACs, []string{"hmac-sha2-256"}) || !slices.Equal(g.Offer.HostKeys, []string{"ssh-ed25519"}) || len(g.Offer.Kex) != 2 {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

func TestReadGreetingTellsWhoWeAre(t *testing.T) {
	var said bytes.Buffer
	if _, err := readGreeting(conversation{bytes.NewReader(greeting("SSH-2.0-X\r\n")), &said}); err != nil || said.String() != "SSH-2.0-sshpace\r\n" {
		t.Errorf("we said %q, %v", said.String(), err)
	}
}

// A server that hangs up after any byte is an error, never a hang or a panic.
func TestReadGreetingCutAtEveryByte(t *testing.T) {
	whole := greeting("Hello\r\nSSH-2.0-X\r\n")
	for cut := range whole {
		if g, err := readGreeting(says(whole[:cut])); err == nil {
			t.Errorf("cut at %d: %+v", cut, g)
		}
	}
}

func TestReadGreetingOfHostileServers(t *testing.T) {
	const version = "SSH-2.0-X\r\n"
	length := func(n uint32, rest ...byte) []byte {
		return append(binary.BigEndian.AppendUint32([]byte(version), n), rest...)
	}
	junk := make([]byte, 1<<20)
	_, _ = rand.Read(junk)
	for name, tt := range map[string]struct {
		text []byte
		want string
	}{
		"nothing":           {nil, "read the version line: EOF"},
		"HTTP":              {[]byte("HTTP/1.1 400 Bad Request\r\nServer: x\r\n\r\n"), "another protocol"},
		"endless lines":     {bytes.Repeat([]byte("x\n"), 1<<20), "text instead of a version line"},
		"an endless line":   {bytes.Repeat([]byte("x"), 1<<20), "too long"},
		"junk":              {junk, ""},
		"a huge packet":     {length(0xffffffff, 4), "wrong length"},
		"beyond the limit":  {length(channel.MaxMessage+1, 4), "wrong length"},
		"an empty packet":   {length(0, 0), "wrong length"},
		"all padding":       {length(12, append([]byte{11}, make([]byte, 11)...)...), "wrong length"},
		"another message":   {append([]byte(version), packet([]byte("\x01\x00\x00\x00\x02bye..................."))...), "unexpected message type 1 (expected 20)"},
		"a short KEXINIT":   {append([]byte(version), packet([]byte{msgKexInit, 1, 2})...), "wrong length"},
		"no lists":          {append([]byte(version), packet(append([]byte{msgKexInit}, make([]byte, 16)...))...), "wrong length"},
		"a list too long":   {append([]byte(version), packet(append(append([]byte{msgKexInit}, make([]byte, 16)...), 0xff, 0xff, 0xff, 0xff))...), "wrong length"},
		"too few lists":     {append([]byte(version), packet(append(append([]byte{msgKexInit}, make([]byte, 16)...), nameList("a,b")...))...), "wrong length"},
		"hung up in packet": {length(100, 4, msgKexInit), "read KEXINIT"},
	} {
		_, err := readGreeting(says(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want an error with %q", name, err, tt.want)
		}
	}
}

// A server that accepts and says nothing costs no more than the deadline, and one that drips is no
// better off.
func TestProbeEndsWithItsContext(t *testing.T) {
	for name, serve := range map[string]func(net.Conn){
		"silence": func(net.Conn) {},
		"drip": func(c net.Conn) {
			for {
				if _, err := c.Write([]byte("x")); err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			conn, err := l.Accept()
			if err == nil {
				serve(conn)
				_, _ = io.Copy(io.Discard, conn) // until the probe hangs up
				conn.Close()
			}
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := Probe(ctx, l.Addr().String()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		l.Close() // nobody may have come
		<-done
	}
	if _, err := Probe(t.Context(), "127.0.0.1:1"); err == nil {
		t.Error("a closed port answers")
	}
}

// Whatever a KEXINIT holds, reading it never panics, and names come from it.
func FuzzParseKexInit(f *testing.F) {
	f.Add(kexInit(usualLists...))
	f.Add([]byte{msgKexInit})
	f.Add(append(append([]byte{msgKexInit}, make([]byte, 16)...), 0, 0, 0, 9, 'x'))
	f.Fuzz(func(t *testing.T, payload []byte) {
		g, err := readGreeting(says(append([]byte("SSH-2.0-X\r\n"), packet(payload)...)))
		if err != nil {
			return
		}
		for _, names := range [][]string{g.Offer.Kex, g.Offer.HostKeys, g.Offer.Ciphers, g.Offer.MACs} {
			if !bytes.Contains(payload, []byte(strings.Join(names, ","))) {
				t.Errorf("%q is not in the packet", names)
			}
		}
	})
}

// Whatever a server says, reading its greeting ends.
func FuzzReadGreeting(f *testing.F) {
	f.Add(greeting("SSH-2.0-X\r\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if g, err := readGreeting(says(text)); err == nil && !strings.HasPrefix(g.Version, "SSH-") {
			t.Errorf("version %q", g.Version)
		}
	})
}
