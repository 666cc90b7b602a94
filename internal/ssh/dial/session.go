package dial

import (
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
)

// session is one command on one channel. It does not use ssh.Session, which
// costs four goroutines and two 32 KiB buffers a command.
type session struct {
	link *link
	ch   sender
	out  func(fleet.Stream, []byte) error
	end  ending

	in    ssh.Channel     // to be read; nil where what comes is handed over
	ended <-chan struct{} // closed when all of that was
}

// sender is what we send on a channel.
type sender interface {
	io.WriteCloser
	CloseWrite() error
	SendRequest(name string, wantReply bool, payload []byte) (bool, error)
}

// ending is what the server told about the command's end.
type ending struct {
	exit   int // -1: none told
	signal string
}

var errExecRefused = errors.New("the server refused to run the command")

var errNoSubsystem = errors.New("the server has no SFTP for this user (Subsystem in its sshd_config)")

// open opens the channel. Nothing has run when it fails. A channel that is not to
// be read hands over what comes from now on, even before a command is granted.
func (l *link) open(out func(fleet.Stream, []byte) error, read bool) (*session, error) {
	s := &session{link: l, out: out, end: ending{exit: -1}}
	if l.own != nil && !read {
		ch, err := l.own.Open("session", nil, receiver{s})
		if err != nil {
			return nil, err
		}
		s.ch, s.ended = ch, ch.Done()
		return s, nil
	}
	ch, reqs, err := l.OpenChannel("session", nil)
	if err != nil {
		return nil, err
	}
	s.ch = ch
	if read {
		s.in = ch
		go ssh.DiscardRequests(reqs)
		return s, nil
	}
	ended := make(chan struct{})
	s.ended = ended
	go func() { s.pumps(ch, reqs); close(ended) }()
	return s, nil
}

// pumps hand over what comes on a channel of x/crypto's until it ends.
func (s *session) pumps(ch ssh.Channel, reqs <-chan *ssh.Request) {
	var both sync.WaitGroup
	both.Go(func() { s.pump(ch.Stderr(), fleet.Stderr) })
	both.Go(func() { s.pump(ch, fleet.Stdout) })
	for req := range reqs {
		s.request(req.Type, req.Payload)
		req.Reply(false, nil)
	}
	both.Wait()
}

// start requests the command; eof says that it gets no input.
func (s *session) start(line string, env []string, eof bool) error {
	if err := s.setenv(env); err != nil {
		return err
	}
	ok, err := s.ch.SendRequest("exec", true, channel.Text(line))
	switch {
	case err != nil:
		return err
	case !ok:
		return errExecRefused
	}
	if eof {
		s.ch.CloseWrite()
	}
	return nil
}

func (s *session) setenv(env []string) error {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := s.ch.SendRequest("env", false, channel.Text(name, value)); err != nil {
			return err
		}
	}
	return nil
}

// subsystem requests a subsystem (RFC 4254 section 6.5).
func (s *session) subsystem(name string, env []string) error {
	if err := s.setenv(env); err != nil {
		return err
	}
	ok, err := s.ch.SendRequest("subsystem", true, channel.Text(name))
	if err == nil && !ok {
		err = errNoSubsystem
	}
	return err
}

// receiver is told what comes on a session's channel.
type receiver struct{ *session }

var _ channel.Handler = receiver{}

// Data hands output on, before anything else is read.
func (r receiver) Data(stderr bool, data []byte) (took int) {
	stream := fleet.Stdout
	if stderr {
		stream = fleet.Stderr
	}
	flow := &r.link.net.flow
	flow.begin(len(data), true)
	r.out(stream, data)
	flow.end()
	return len(data)
}

func (r receiver) Request(name string, payload []byte) { r.request(name, payload) }

func (receiver) EOF()    {}
func (receiver) Closed() {}

// told tells whether the server has said how the command ended. It may be asked once
// ended is closed.
func (s *session) told() bool { return s.end.exit >= 0 || s.end.signal != "" }

// feed sends the input, if there is one; start has sent the end of none. stop waits for
// what is being sent, which the end of the connection ends.
func (s *session) feed(input fleet.Input) (stop func()) {
	if input == nil {
		return func() {}
	}
	r := input.Reader()
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := takeBuffer()
		defer giveBuffer(buf)
		io.CopyBuffer(struct{ io.Writer }{s.ch}, struct{ io.Reader }{r}, buf[:])
		s.ch.CloseWrite()
	}()
	return func() { r.Close(); <-done }
}

// request handles exit-status and exit-signal (RFC 4254 section 6.10).
func (s *session) request(name string, payload []byte) {
	switch name {
	case "exit-status":
		var m struct{ Status uint32 }
		if ssh.Unmarshal(payload, &m) == nil {
			s.end.exit = int(m.Status)
		}
	case "exit-signal":
		var m struct {
			Signal     string
			CoreDumped bool
			Message    string
			Language   string
		}
		if ssh.Unmarshal(payload, &m) == nil {
			s.end.signal = signalName(m.Signal)
		}
	}
}

// signalName keeps what a signal can be called; the peer chose the text.
func signalName(s string) string {
	if len(s) > 20 {
		s = s[:20]
	}
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(s))
	if name == "" {
		return "?"
	}
	return name
}

// Waiting for output needs a buffer per stream; ten thousand idle connections
// must not hold a large one each.
const (
	idleBuffer = 512
	bulkBuffer = 64 << 10
)

var bulkBuffers = sync.Pool{New: func() any { return new([bulkBuffer]byte) }}

func takeBuffer() *[bulkBuffer]byte { return bulkBuffers.Get().(*[bulkBuffer]byte) }

func giveBuffer(b *[bulkBuffer]byte) { bulkBuffers.Put(b) }

// pump hands on one stream until it ends. What nobody wants any more is read
// and dropped, so that the channel can end.
func (s *session) pump(r io.Reader, stream fleet.Stream) {
	var idle [idleBuffer]byte
	var bulk *[bulkBuffer]byte
	buf := idle[:]
	flow := &s.link.net.flow
	for {
		n, err := r.Read(buf)
		if n > 0 {
			flow.begin(n, n < len(buf))
			s.out(stream, buf[:n])
			flow.end()
		}
		switch full := n == len(buf); {
		case err != nil:
			if bulk != nil {
				giveBuffer(bulk)
			}
			return
		case full && bulk == nil:
			bulk = takeBuffer()
			buf = bulk[:]
		case bulk != nil && n < idleBuffer:
			giveBuffer(bulk)
			bulk, buf = nil, idle[:]
		}
	}
}
