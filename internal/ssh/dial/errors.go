package dial

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
	"sshpace/internal/ssh/transport"
)

// Error is a login or session that failed. Text has the words of ssh(1), without its "ssh: " and on
// one line.
type Error struct {
	Class    fleet.Class
	Text     string
	Hint     string
	SlowDown bool // nothing ran, and trying later may help
	MayRun   bool // the command has left, and nothing shows that it does not run
	Closed   bool // the server ended the login without an answer
	OnlySSH  bool // ssh may know a key that is needed, and this engine does not
	// Lacking lists host key algorithms of ssh that this engine lacks: a server that has one of
	// them might have proved its identity with it.
	Lacking []string
	Err     error
}

func (e *Error) Error() string { return e.Text }

func (e *Error) Unwrap() error { return e.Err }

// because returns an error of a cause that ssh(1) has, too.
func because(cause openssh.Cause, text string, err error) *Error {
	return &Error{Class: session.ClassOf(cause), Text: text, Hint: cause.Advice(), Err: err}
}

// connectError classifies a failed TCP connect to one address.
func connectError(ctx context.Context, t *Target, err error) *Error {
	where := fmt.Sprintf("connect to host %s port %d: ", t.HostName, t.port())
	var no syscall.Errno
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout):
		return interrupted(ctx)
	case ctx.Err() != nil || os.IsTimeout(err):
		no = syscall.ETIMEDOUT
	case !errors.As(err, &no):
		return &Error{Class: fleet.Local, Text: where + err.Error(), Err: err}
	}
	e := &Error{Class: fleet.Local, Text: where + fault.Strerror(no), Err: err}
	if cause, _ := openssh.CauseOf([]string{fault.Strerror(no)}); cause != openssh.Unknown {
		e.Class = session.ClassOf(cause)
	}
	e.SlowDown = fleet.Exhausted(err) || e.Class == fleet.Throttled
	return e
}

// interrupted returns the error of a login that our own side gave up.
func interrupted(ctx context.Context) *Error {
	cause := context.Cause(ctx)
	class, _ := fleet.Stopped(cause)
	return &Error{Class: class, Text: cause.Error(), Err: cause}
}

// failed classifies an error between TCP connect and login.
func (h *hand) failed(ctx context.Context, err error) *Error {
	peer := fmt.Sprintf("%s port %d", peer(h.net, h.target), h.target.port())
	said := greeting{h.own.Greeting()}
	own, isOwn := errors.AsType[*Error](err) // from a callback of ours
	switch {
	case isOwn && fleet.HostKeyUnknown <= own.Class && own.Class <= fleet.HostKeyWeak:
		own.besides(h.own.Theirs().HostKey)
		return own
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout):
		return interrupted(ctx)
	case said.wrong() && !said.turnedAway():
		return because(openssh.NotSSH, "protocol error: "+peer+" sent "+said.quoted()+" instead of an SSH 2 version", err)
	case ctx.Err() != nil:
		return h.timedOut(said, peer, err)
	case isOwn:
		return own
	case said.turnedAway() && ended(err):
		e := because(openssh.NoVersion, "kex_exchange_identification: "+endText(err)+" ("+peer+" turned the connection away)", err)
		e.SlowDown = true
		return e
	}
	return h.protocolError(peer, err)
}

// besides adds that the server could have proved its identity by another of its algorithms.
func (e *Error) besides(offered []string) {
	i := slices.IndexFunc(offered, func(name string) bool { return slices.Contains(e.Lacking, name) })
	if i >= 0 {
		e.OnlySSH, e.Hint = true, "the server also offers "+offered[i]+", which only ssh can check: use --engine auto or openssh"
	}
}

// peer returns the dialed address, for messages.
func peer(c net.Conn, t *Target) string {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		return tcp.IP.String()
	}
	return t.HostName
}

func (h *hand) timedOut(said greeting, peer string, err error) *Error {
	during := session.During(h.phase, said.Version != "", false)
	hint := "the server accepts connections but does not answer; "
	if said.slow() {
		hint = "the server has sent only the beginning of its version line, " + said.quoted() + "; "
	}
	return &Error{Class: fleet.TimedOut, Text: "Connection to " + peer + " timed out during " + during, Hint: hint + openssh.TimedOut.Advice(), Err: err}
}

// protocolError describes an error other than a timeout or a server that turned us away before its
// version line.
func (h *hand) protocolError(peer string, err error) *Error {
	if noCommon, ok := errors.AsType[*ssh.AlgorithmNegotiationError](err); ok {
		return unmatched(peer, noCommon)
	}
	class := fleet.Lost
	if h.phase == fleet.PhaseAuth {
		class = fleet.AuthFailed
	}
	if bye, ok := errors.AsType[*transport.DisconnectError](err); ok {
		return disconnected(class, peer, bye)
	}
	if ended(err) {
		e := &Error{Class: class, Text: "Connection closed by " + peer + ": " + endText(err), Err: err, Closed: h.phase == fleet.PhaseAuth}
		if e.Closed {
			e.Text += session.Said(h.own.Banner())
		}
		return e
	}
	return &Error{Class: fleet.NotSSH, Text: "protocol error with " + peer + ": " + strings.TrimPrefix(err.Error(), "ssh: "), Err: err}
}

// notMatched holds ssh's words for the kinds of algorithm that two sides do not share (ssherr.c),
// and the keyword of our offer.
var notMatched = []struct{ what, words, keyword string }{
	{"key exchange", "key exchange method", "KexAlgorithms"},
	{"host key", "host key type", "HostKeyAlgorithms"},
	{"cipher", "cipher", "Ciphers"},
	{"MAC", "MAC", "MACs"},
	{"compression", "compression method", "Compression"},
}

// unmatched describes a failed negotiation in ssh's words.
func unmatched(peer string, err *ssh.AlgorithmNegotiationError) *Error {
	e := &Error{Class: fleet.NoCommonAlgo, Text: "Unable to negotiate with " + peer + ": " + strings.TrimPrefix(err.Error(), "ssh: "), Err: err}
	for _, row := range notMatched {
		if strings.HasSuffix(err.What, row.what) {
			e.Text = "Unable to negotiate with " + peer + ": no matching " + row.words + " found. Their offer: " + strings.Join(err.RequestedAlgorithms, ",")
			e.Hint = "sshpace config shows " + row.keyword + ", of which the server has none; --engine openssh may know more"
		}
	}
	return e
}

// disconnected returns the error of a server that disconnected with a message (RFC 4253 section
// 11.1).
func disconnected(class fleet.Class, peer string, bye *transport.DisconnectError) *Error {
	cause, _ := openssh.CauseOf([]string{bye.Message})
	return &Error{Class: class, Text: fmt.Sprintf("Received disconnect from %s:%d: %s", peer, bye.Reason, bye.Message), Hint: cause.Advice(), Err: bye}
}

// ended reports whether err only says that the connection is over.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func endText(err error) string {
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return "Connection reset by peer"
	}
	return "Connection closed by remote host"
}

// greeting classifies a server's text before the key exchange: whether an end of the connection
// means "slow down", "no SSH here" or a broken server.
type greeting struct{ *transport.Greeting }

// turnedAway reports whether an end of the connection now means "slow down": no key exchange was
// seen, and no text but sshd's own.
func (g greeting) turnedAway() bool {
	return !g.More && (g.Version != "" || len(g.Text) == 0 || openssh.TurnedAway(string(g.Text)))
}

// wrong reports whether the peer spoke, but not SSH 2.
func (g greeting) wrong() bool { return g.Version == "" && len(g.Text) > 0 && !g.slow() }

// slow reports whether the peer has sent the beginning of a version line and nothing else.
func (g greeting) slow() bool {
	said := string(g.Text)
	return g.Version == "" && said != "" && !strings.Contains(said, "\n") && slices.ContainsFunc([]string{"SSH-2.0-", "SSH-1.99-"}, func(start string) bool {
		return strings.HasPrefix(said, start) || strings.HasPrefix(start, said)
	})
}

func (g greeting) quoted() string {
	const most = 128
	return strconv.QuoteToASCII(string(bytes.TrimSpace(g.Text[:min(len(g.Text), most)])))
}
