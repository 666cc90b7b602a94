// Package mux is OpenSSH's protocol for shared connections (PROTOCOL.mux), both its sides.
//
// As a client it runs commands over a ControlMaster, in proxy mode. Nothing is started, no key is
// needed, and the master's own sessions are left alone. A master that cannot be used is an *Error,
// after which nothing has run: the caller may log in by itself.
//
// As a master, a Server lets ssh(1), and all programs that use it, share a connection of ours.
package mux

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/sys/proc"
)

// Error says why the master at a socket was not used.
type Error struct {
	Path string
	Text string
	Err  error
}

func (e *Error) Error() string {
	return termsafe.Line("ControlMaster at " + e.Path + " " + e.Text)
}

func (e *Error) Unwrap() error { return e.Err }

// The messages of PROTOCOL.mux section 11, and version of them (section 1).
const (
	msgHello   = 0x00000001
	askSession = 0x10000002
	askAlive   = 0x10000004
	askExit    = 0x10000005
	askForward = 0x10000006
	askCancel  = 0x10000007
	askStdio   = 0x10000008
	askStop    = 0x10000009
	askProxy   = 0x1000000f
	askInfo    = 0x20000001 // since OpenSSH 10.3, as sayInfo
	sayOK      = 0x80000001
	sayDenied  = 0x80000002
	sayFailure = 0x80000003
	sayExit    = 0x80000004
	sayAlive   = 0x80000005
	sayOpened  = 0x80000006
	sayPort    = 0x80000007
	sayNoTTY   = 0x80000008
	sayProxy   = 0x8000000f
	sayInfo    = 0x90000001

	version  = 4
	noEscape = 0xffffffff
)

// replyTimeout is the time for a master to answer at all: it is a process of this machine, and a
// stopped one never does.
const replyTimeout = 3 * time.Second

// link is a connection between a client and a master.
type link struct {
	path    string
	conn    net.Conn
	in      *bufio.Reader
	lost    atomic.Bool // nothing can be read any more; set before any channel ends
	passing *passing    // of a master: files that have come through in

	mu sync.Mutex // of writing
}

// loss describes the end of a link, "" while it is alive.
func (l *link) loss() string {
	if l.lost.Load() {
		return "connection lost"
	}
	return ""
}

// dial connects to a master and asks for proxy mode. A socket that does not exist is
// os.ErrNotExist, any other failure an *Error.
func dial(ctx context.Context, path string) (*link, error) {
	return greet(ctx, path, (*link).proxy)
}

// connect is dial without proxy mode.
func connect(ctx context.Context, path string) (*link, error) {
	return greet(ctx, path, func(*link) error { return nil })
}

// greet connects to a master and makes a request.
func greet(ctx context.Context, path string, ask func(*link) error) (*link, error) {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) { // as of most hosts, and cheaper than trying
		return nil, os.ErrNotExist
	}
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, os.ErrNotExist
		}
		return nil, &Error{path, "is dead: " + reason(err), err}
	}
	l := &link{path: path, conn: conn, in: bufio.NewReader(conn)}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Now()) })
	if err = l.hello(); err == nil {
		err = ask(l)
	}
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err == nil {
		return l, nil
	}
	conn.Close()
	if own, ok := errors.AsType[*Error](err); ok {
		return nil, own
	}
	if ctx.Err() != nil {
		return nil, &Error{path, "does not answer", ctx.Err()}
	}
	return nil, &Error{path, "is unusable: " + reason(err), err}
}

// reason returns an error without the words that the caller adds anyway.
func reason(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return errno.Error()
	}
	return err.Error()
}

// hello exchanges the versions with the master (PROTOCOL.mux section 1). It first checks who owns
// the socket.
func (l *link) hello() error {
	if err := cmp.Or(l.checkOwner(), l.checkLink()); err != nil {
		return err
	}
	hello := ssh.Marshal(struct{ Type, Version uint32 }{msgHello, version})
	if err := l.send(hello, nil); err != nil {
		return err
	}
	kind, body, err := l.message()
	if err != nil {
		return err
	}
	if kind != msgHello || len(body) < 4 || binary.BigEndian.Uint32(body) != version {
		return &Error{l.path, fmt.Sprintf("speaks another protocol than version %d", version), nil}
	}
	return nil
}

// proxy asks the master to become a proxy (PROTOCOL.mux section 9): from then on the link carries
// packets of the connection.
func (l *link) proxy() error {
	if err := l.send(ssh.Marshal(struct{ Type, ID uint32 }{askProxy, 0}), nil); err != nil {
		return err
	}
	switch kind, body, err := l.message(); {
	case err != nil:
		return err
	case kind == sayDenied || kind == sayFailure:
		return &Error{l.path, "refuses: " + text(body), nil}
	case kind != sayProxy:
		return &Error{l.path, "has no proxy mode; that is in OpenSSH since 7.4", nil}
	}
	return nil
}

// checkLink refuses a symbolic link of another user, in a directory where everybody may put one: it
// leads to a master of ours, but to that of another host.
func (l *link) checkLink() error {
	info, err := os.Lstat(l.path)
	if err != nil || info.Mode().Type() != os.ModeSymlink {
		return err
	}
	if owner := info.Sys().(*syscall.Stat_t).Uid; owner != 0 && int(owner) != os.Geteuid() {
		return &Error{l.path, "is a link of another user", nil}
	}
	return nil
}

// checkOwner refuses a socket at which another user listens.
func (l *link) checkOwner() error { return CheckOwner(l.path, l.conn.(*net.UnixConn)) }

// CheckOwner refuses another user at the other end of a connection by the socket at path.
func CheckOwner(path string, conn *net.UnixConn) error {
	owner, _, err := proc.Peer(conn)
	if err == nil && owner != 0 && owner != os.Geteuid() {
		err = &Error{path, "belongs to another user", nil}
	}
	return err
}

// text is the reason in a refusal: a request id, then a string.
func text(body []byte) string {
	var m struct {
		ID     uint32
		Reason string
	}
	if ssh.Unmarshal(body, &m) != nil {
		return "no reason given"
	}
	return m.Reason
}

// message reads a message.
func (l *link) message() (kind uint32, body []byte, err error) {
	data, err := l.frame(0, nil)
	if err == nil && len(data) < 4 {
		err = errShort
	}
	if err != nil {
		return 0, nil, err
	}
	return binary.BigEndian.Uint32(data), data[4:], nil
}

var errShort = errors.New("a message is too short")

// packet reads a message of SSH's connection protocol (PROTOCOL.mux section 9).
func (l *link) packet(old []byte) ([]byte, error) {
	data, err := l.frame(1, old)
	if err == nil && len(data) == 0 {
		err = errShort
	}
	return data, err
}

// frame reads a message with its length, without its first bytes, into the memory of an old one.
func (l *link) frame(without int, old []byte) ([]byte, error) {
	head, err := l.in.Peek(4)
	if err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint32(head)) - without
	switch {
	case n > channel.MaxMessage:
		return nil, fmt.Errorf("a message of %d bytes", n)
	case n < 0:
		return nil, errShort
	}
	if _, err := l.in.Discard(len(head) + without); err != nil {
		return nil, err
	}
	data := slices.Grow(old[:0], n)[:n]
	_, err = io.ReadFull(l.in, data)
	return data, err
}

// send writes head and data as one message.
func (l *link) send(head, data []byte) error {
	return l.write(net.Buffers{framed(head, len(data)), data})
}

// framed returns the beginning of a message whose rest has some bytes.
func framed(head []byte, rest int) []byte {
	return append(binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(head)), uint32(len(head)+rest)), head...)
}

// write writes messages.
func (l *link) write(messages net.Buffers) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := messages.WriteTo(l.conn)
	return err
}
