package mux

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"
)

// The messages of PROTOCOL.mux section 2. What it calls bool is an uint32 there.
const (
	askSession = 0x10000002
	sayExit    = 0x80000004
	sayOpened  = 0x80000006

	noEscape = 0xffffffff
)

// newSession asks for a session whose standard files are passed to the master.
type newSession struct {
	Type, ID                    uint32
	Reserved                    string
	Terminal, X11, Agent, IsSub uint32
	Escape                      uint32
	TerminalType, Command       string
	Env                         []byte `ssh:"rest"`
}

// execPassed has the master run a command in a session of its own, and returns what that
// writes, at most most bytes and one. A server that gives no further session is an *Error,
// and the master lives on, which it does not where proxy mode asks.
func (s *Session) execPassed(ctx context.Context, line string, input io.Reader, most int64) (out []byte, exit int, err error) {
	l, err := connect(ctx, s.Path)
	if err != nil {
		return nil, -1, err
	}
	defer l.conn.Close()
	defer context.AfterFunc(ctx, func() { l.conn.Close() })()
	theirs, in, answer, err := standardFiles()
	if err != nil {
		return nil, -1, err
	}
	var sending sync.WaitGroup
	defer sending.Wait()
	defer answer.Close()
	defer in.Close() // ends what is still being sent
	err = l.open(newSession{Type: askSession, Command: line, Escape: noEscape, Env: environment(s.Command.Env)}, theirs)
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		return nil, -1, err
	}
	sending.Go(func() {
		_, _ = io.CopyBuffer(struct{ io.Writer }{in}, input, make([]byte, 64<<10))
		in.Close()
	})
	var all bytes.Buffer
	defer context.AfterFunc(ctx, func() { answer.SetReadDeadline(time.Now()) })()
	if _, err := io.Copy(&all, io.LimitReader(answer, most+1)); err != nil || int64(all.Len()) > most {
		return all.Bytes(), -1, err
	}
	exit, err = l.exit()
	return all.Bytes(), exit, err
}

// standardFiles are those of a session, and our ends of its input and output. Its
// standard error goes nowhere.
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

// environment is NAME=value as strings, one after the other.
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

// exit waits for the exit status; -1 if there is none.
func (l *link) exit() (int, error) {
	for {
		kind, body, err := l.message()
		if err != nil {
			return -1, err
		}
		if kind == sayExit && len(body) >= 8 {
			return int(binary.BigEndian.Uint32(body[4:])), nil
		}
	}
}
