package dial

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// dialCommand connects through a ProxyCommand: what the user's shell runs is
// the connection, its standard input and output are the two directions.
func dialCommand(t *Target) (net.Conn, error) {
	shell := os.Getenv("SHELL")
	if shell == "" {
		shell = "/bin/sh"
	}
	// exec, so that the process to end is the command and not a shell above it,
	// as ssh does (sshconnect.c, expand_proxy_command).
	cmd := exec.Command(shell, "-c", "exec "+t.ProxyCommand)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c := &proxyConn{cmd: cmd, name: t.HostName, command: t.ProxyCommand, said: proc.Tail{Max: maxLastWords}}
	cmd.Stderr = &c.said
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, proxyError(t, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, proxyError(t, err)
	}
	c.in, c.out = in, out
	if err := cmd.Start(); err != nil {
		return nil, proxyError(t, err)
	}
	return c, nil
}

func proxyError(t *Target, err error) *Error {
	return &Error{Class: fleet.Local, Text: "ProxyCommand for " + t.HostName + ": " + err.Error(), Err: err,
		SlowDown: errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.EAGAIN)}
}

// proxyConn is a process as a connection. It has no deadlines.
type proxyConn struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  io.Reader
	name string
	said proc.Tail
	once sync.Once

	command string
}

func (c *proxyConn) Read(p []byte) (int, error)  { return c.out.Read(p) }
func (c *proxyConn) Write(p []byte) (int, error) { return c.in.Write(p) }

// Close ends the command and all that it has started.
func (c *proxyConn) Close() error {
	c.once.Do(func() {
		c.in.Close()
		syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL)
		c.cmd.WaitDelay = time.Second // somebody else may hold its stderr
		c.cmd.Wait()
	})
	return nil
}

func (c *proxyConn) LocalAddr() net.Addr              { return proxyAddr("") }
func (c *proxyConn) RemoteAddr() net.Addr             { return proxyAddr(c.name) }
func (c *proxyConn) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (c *proxyConn) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (c *proxyConn) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// proxyAddr is all that is known of the other end.
type proxyAddr string

func (proxyAddr) Network() string  { return "proxy" }
func (a proxyAddr) String() string { return string(a) }

// maxLastWords is how much of what a command says is kept: its end, in bytes.
const maxLastWords = 512

// lines are the last lines that the command has said, without what could harm a message.
func (c *proxyConn) lines() []string {
	text := strings.Map(func(r rune) rune {
		if r != '\n' && r < 0x20 || r == 0x7f || r == 0xfffd {
			return -1
		}
		return r
	}, strings.TrimSpace(c.said.String()))
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return line == "" })
}

// explainProxy adds to err what the ProxyCommand said, if that ended the login.
func explainProxy(ctx context.Context, raw net.Conn, e *Error) *Error {
	c, ok := raw.(*proxyConn)
	if !ok || ctx.Err() != nil || e.Class != fleet.Throttled {
		return e
	}
	c.Close() // waits, so that all was said
	lines := c.lines()
	said := openssh.ProxyReason(c.command, lines)
	switch {
	case len(lines) == 0:
		said = "it ended without a word"
	case said == "":
		return e // a jump host greeted us, and the host behind it hung up
	}
	return &Error{Class: fleet.Lost, Text: "ProxyCommand for " + c.name + ": " + said, Err: e.Err,
		Hint: "run the ProxyCommand by hand to see what is wrong"}
}
