package mux

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/line"
)

// What PROTOCOL.mux calls bool is an uint32 in its section 2.

// newSession asks for a session whose standard files are passed to the master.
type newSession struct {
	Type, ID                    uint32
	Reserved                    string
	Terminal, X11, Agent, IsSub uint32
	Escape                      uint32
	TerminalType, Command       string
	Env                         []byte `ssh:"rest"`
}

// passed is a session whose standard files the master has.
type passed struct {
	*link
	in, out *os.File
}

// pass lets the master open a session of its own. A server that gives no further session is an
// *Error, and the master survives, which it does not in proxy mode.
func pass(ctx context.Context, path string, a line.Ask) (line.Channel, error) {
	l, err := connect(ctx, path)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { l.conn.Close() })()
	theirs, in, out, err := standardFiles()
	if err != nil {
		l.conn.Close()
		return nil, err
	}
	p := &passed{l, in, out}
	ask := newSession{Type: askSession, Command: a.Text, Escape: noEscape, Env: environment(a.Env)}
	if a.Kind == line.Subsystem {
		ask.IsSub = 1
	}
	err = l.open(ask, theirs)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *passed) Read(data []byte) (int, error) { return p.out.Read(data) }

func (p *passed) Write(data []byte) (int, error) { return p.in.Write(data) }

func (p *passed) CloseWrite() error { return p.in.Close() }

// Close ends our files, and the session with our link.
func (p *passed) Close() error { return errors.Join(p.in.Close(), p.out.Close(), p.conn.Close()) }

// standardFiles returns the three standard files of a session, and our ends of its input and
// output. Its standard error goes to /dev/null.
func standardFiles() (theirs []*os.File, in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, nil, nil, err
	}
	stdin, in, err := os.Pipe()
	if err != nil {
		null.Close()
		return nil, nil, nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		null.Close()
		stdin.Close()
		in.Close()
		return nil, nil, nil, err
	}
	return []*os.File{stdin, stdout, null}, in, out, nil
}

// environment returns NAME=value as strings, one after the other.
func environment(env []string) (all []byte) {
	for _, kv := range env {
		all = append(binary.BigEndian.AppendUint32(all, uint32(len(kv))), kv...)
	}
	return all
}

// open asks for a session and passes its files, each with a byte (OpenSSH, monitor_fdpass.c).
func (l *link) open(ask newSession, files []*os.File) error {
	if err := l.send(ssh.Marshal(ask), nil); err != nil {
		return err
	}
	for _, f := range files {
		raw, err := f.SyscallConn()
		if err != nil {
			return err
		}
		var sent error
		err = raw.Control(func(fd uintptr) {
			_, _, sent = l.conn.(*net.UnixConn).WriteMsgUnix([]byte{0}, unix.UnixRights(int(fd)), nil)
		})
		if err := errors.Join(err, sent); err != nil {
			return err
		}
	}
	kind, body, err := l.message()
	switch {
	case err != nil:
		return err
	case kind == sayDenied || kind == sayFailure:
		return &Error{l.path, "gives no session: " + strings.TrimSuffix(text(body), "\n"), nil}
	case kind != sayOpened:
		return &Error{l.path, fmt.Sprintf("answers with message %#x", kind), nil}
	}
	return nil
}

// Exit returns the end of the command, from the master.
func (p *passed) Exit() int {
	for {
		kind, body, err := p.message()
		if err != nil {
			return -1
		}
		if kind == sayExit && len(body) >= 8 {
			return int(binary.BigEndian.Uint32(body[4:]))
		}
	}
}
