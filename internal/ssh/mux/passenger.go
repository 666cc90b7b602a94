package mux

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/session"
)

// passenger is a session, or a connection from the server to somewhere, with the files of a client.
type passenger struct {
	*client
	id      uint32
	ch      *channel.Channel // set before opened is closed
	opened  chan struct{}
	in, out *stdio
	err     *stdio // nil: there is none
	escapes *escapes
	release func()             // closes the files
	leave   context.CancelFunc // ends it
	told    bool               // the exit status
	unread  bool               // standard output takes no more
}

var _ channel.Handler = (*passenger)(nil)

// newSession opens a session with the three files of a client.
func (c *client) newSession(id uint32, f *channel.Fields) error {
	a := line.Ask{Kind: line.Exec}
	f.Text()
	tty := f.Number() != 0
	f.Number() // X11
	f.Number() // agent
	if f.Number() != 0 {
		a.Kind = line.Subsystem
	}
	escape, term := f.Number(), string(f.Text())
	a.Text = string(f.Text())
	for len(f.Rest) > 0 {
		a.Env = append(a.Env, string(f.Text()))
	}
	if f.Err() != nil {
		return errShort
	}
	a.Env = c.of.permitted(a.Env)
	p, err := c.board(id, 3)
	if p == nil {
		return err
	}
	var modes []byte
	if tty {
		modes = p.in.terminal(term)
		if escape != noEscape {
			p.escapes = &escapes{char: byte(escape)}
		}
	}
	p.begin(id, cmp.Or(a.Text, "shell"), "session", nil, func() { p.start(modes, a) })
	return nil
}

// newStdio opens a connection from the server to somewhere, with two files of a client.
func (c *client) newStdio(id uint32, f *channel.Fields) error {
	f.Text()
	to := place{string(f.Text()), f.Number()}
	if f.Err() != nil {
		return errShort
	}
	p, err := c.board(id, 2)
	if p == nil {
		return err
	}
	kind, specific := to.direct(nil)
	p.begin(id, "to "+to.String(), kind, specific, func() { p.of.tasks.Go(p.feed) })
	return nil
}

// board takes n files of the client. The passenger is nil if it is refused.
func (c *client) board(id uint32, n int) (*passenger, error) {
	files, err := c.received(n)
	if err != nil {
		return nil, errors.Join(c.fail(id, "did not receive file descriptors"), err)
	}
	if c.session != nil {
		for _, f := range files {
			unix.Close(f)
		}
		return nil, c.fail(id, "Multiple sessions not supported")
	}
	p := &passenger{client: c, opened: make(chan struct{}), in: openStdio(files[0], os.O_RDONLY), out: openStdio(files[1], os.O_WRONLY)}
	if n > 2 {
		p.err = openStdio(files[2], os.O_WRONLY)
	}
	p.release = sync.OnceFunc(func() { closeStdio(p.in, p.out, p.err) })
	c.session = p
	return p, nil
}

// begin opens a channel and starts what it is for. The client may leave meanwhile.
func (p *passenger) begin(id uint32, what, kind string, specific []byte, start func()) {
	life, leave := context.WithCancel(p.of.life)
	p.leave = leave
	number, ended := p.of.opened(what)
	p.id = number
	p.of.tasks.Go(func() {
		defer p.conn.Close() // which the client waits for
		defer ended()
		defer p.release()
		defer leave()
		answered := p.asks(id, func() { ended(); p.release() })
		ch, err := p.of.Conn.Named.Open(kind, specific, p)
		inTime := answered()
		if err != nil {
			p.release() // ssh continues with these files
			why := "connection lost"
			if _, refused := errors.AsType[*ssh.OpenChannelError](err); refused {
				why = "Session open refused by peer"
			}
			if inTime {
				_ = p.fail(id, why)
			}
			return
		}
		p.ch = ch
		close(p.opened)
		defer context.AfterFunc(life, func() {
			p.release() // the channel's Handler may be writing
			_ = p.ch.Close()
		})()
		if !inTime || p.reply(sayOpened, id, p.id) != nil { // ssh may have connected by itself
			leave()
			return
		}
		start()
		select {
		case <-p.ch.Done():
		case <-p.of.life.Done(): // the server may not agree to the end
		}
	})
}

// start requests a terminal and what shall run, and feeds that.
func (p *passenger) start(modes []byte, a line.Ask) {
	if modes != nil {
		if granted, err := p.ch.SendRequest("pty-req", true, modes); err == nil && !granted {
			p.say("PTY allocation request failed on channel %d\r\n", p.id)
			_ = p.reply(sayNoTTY, p.id)
		}
		p.watchSize()
	}
	for _, kv := range a.Env {
		name, value, _ := strings.Cut(kv, "=")
		_, _ = p.ch.SendRequest("env", false, channel.Text(name, value))
	}
	name, specific := string(a.Kind), channel.Text(a.Text)
	if a.Kind == line.Exec && a.Text == "" {
		name, specific = "shell", nil
	}
	granted, err := p.ch.SendThen(name, true, specific, func() { p.of.tasks.Go(p.feed) })
	if err == nil && !granted {
		p.say("%s request failed on channel %d\r\n", name, p.id)
		p.leave()
	}
}

// say writes to the client's standard error.
func (p *passenger) say(format string, args ...any) { fmt.Fprintf(p.err, format, args...) }

// watchSize reports changes of the terminal's size: ssh passes its SIGWINCH on to us.
func (p *passenger) watchSize() {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	p.of.tasks.Go(func() {
		defer signal.Stop(changed)
		for {
			select {
			case <-changed:
				_, _ = p.ch.SendRequest("window-change", false, p.in.size())
			case <-p.ch.Done():
				return
			case <-p.of.life.Done():
				return
			}
		}
	})
}

// feed sends the client's input.
func (p *passenger) feed() {
	buf := session.Buffers.Get().(*session.Buffer)
	defer session.Buffers.Put(buf)
	for {
		n, err := p.in.Read(buf[:])
		data := buf[:n]
		if p.escapes != nil {
			if data = p.typed(data); p.escapes.left {
				return
			}
		}
		if _, e := p.ch.Write(data); e != nil || errors.Is(err, os.ErrClosed) {
			return // its end is not that of the input
		}
		if err != nil {
			_ = p.ch.CloseWrite()
			return
		}
	}
}

// Data writes output to the client's files. Once nobody reads its standard output, the server is
// told, and what still comes is dropped.
func (p *passenger) Data(stderr bool, data []byte) (took int) {
	switch {
	case stderr && p.err != nil:
		_, _ = p.err.Write(data)
	case !p.unread:
		if _, err := p.out.Write(data); err != nil {
			p.unread = true
			<-p.opened // a server may send before it is asked
			_, _ = p.ch.SendRequest("eow@openssh.com", false, nil)
		}
	}
	return len(data)
}

// EOF does nothing: the client itself has its files open, too.
func (*passenger) EOF() {}

// Request passes on the exit status. After a signal there is none: ssh ends with 255.
func (p *passenger) Request(name string, payload []byte) {
	if name == "exit-status" && len(payload) == 4 && !p.told {
		p.told = true
		_ = p.reply(sayExit, p.id, binary.BigEndian.Uint32(payload))
	}
}

// Closed ends the feeding.
func (p *passenger) Closed() { p.release() }

// escapes finds escape sequences in what is typed (ssh(1), ESCAPE CHARACTERS).
type escapes struct {
	char    byte
	pending bool // the last byte was the escape character
	within  bool // a line
	left    bool // nothing more is sent: it ends the session
}

// typed carries out the escape sequences in what was typed, and returns the rest.
func (p *passenger) typed(data []byte) []byte {
	e, rest := p.escapes, make([]byte, 0, len(data)+1)
	for _, b := range data {
		switch {
		case e.pending:
			e.pending = false
			if p.escaped(b) {
				if e.left {
					return nil
				}
				continue
			}
			if b != e.char {
				rest = append(rest, e.char)
			}
		case b == e.char && !e.within:
			e.pending = true
			continue
		}
		e.within = b != '\r' && b != '\n'
		rest = append(rest, b)
	}
	return rest
}

// escaped carries out an escape sequence, if it is one.
func (p *passenger) escaped(b byte) bool {
	const suspend = 'Z' - 64
	text := ""
	switch b {
	case '.':
		p.escapes.left = true
		defer p.leave()
	case 'B':
		_, _ = p.ch.SendRequest("break", false, channel.AppendNumber(nil, 1000))
	case 'I':
		text = p.of.connection()
	case '#':
		text = p.of.channels()
	case '?':
		text = strings.ReplaceAll("Supported escape sequences:\r\n ~. end this session\r\n ~B send a BREAK\r\n"+
			" ~I show the connection\r\n ~# list what is open\r\n ~? this message\r\n ~~ send the escape character\r\n", "~", string(rune(p.escapes.char)))
	case suspend:
		p.say("%c^Z escape not available to multiplexed sessions\r\n", p.escapes.char)
		return true
	case '&', 'C', 'R', 'v', 'V':
		p.say("%c%c escape not available to multiplexed sessions\r\n", p.escapes.char, b)
		return true
	default:
		return false
	}
	p.say("%c%c\r\n%s", p.escapes.char, b, text)
	return true
}
