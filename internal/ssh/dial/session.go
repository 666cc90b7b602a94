package dial

import (
	"errors"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
)

// session is one command on one channel. It does not use ssh.Session, which
// costs four goroutines and two 32 KiB buffers a command.
type session struct {
	link *link
	ch   channel.Sender
	out  func(fleet.Stream, []byte) error
	end  channel.End

	in    ssh.Channel     // to be read; nil where what comes is handed over
	ended <-chan struct{} // closed when all of that was
}

var errExecRefused = errors.New("the server refused to run the command")

var errNoSubsystem = errors.New("the server has no SFTP for this user (Subsystem in its sshd_config)")

// open opens the channel. Nothing has run when it fails. A channel that is not to
// be read hands over what comes from now on, even before a command is granted.
func (l *link) open(out func(fleet.Stream, []byte) error, read bool) (*session, error) {
	s := &session{link: l, out: out, end: channel.End{Exit: -1}}
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
		s.end.Take(req.Type, req.Payload)
		req.Reply(false, nil)
	}
	both.Wait()
}

// start requests the command; eof says that it gets no input.
func (s *session) start(line string, env []string, eof bool) error {
	ok, err := channel.Start(s.ch, "exec", line, env)
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

// subsystem requests a subsystem (RFC 4254 section 6.5).
func (s *session) subsystem(name string, env []string) error {
	ok, err := channel.Start(s.ch, "subsystem", name, env)
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

func (r receiver) Request(name string, payload []byte) { r.end.Take(name, payload) }

func (receiver) EOF()    {}
func (receiver) Closed() {}

// feed sends the input, if there is one; start has sent the end of none. stop waits for
// what is being sent, which the end of the connection ends.
func (s *session) feed(input fleet.Input) (stop func()) {
	if input == nil {
		return func() {}
	}
	return channel.Feed(s.ch, input.Reader())
}

// idleBuffer is for waiting for output, one per stream: ten thousand idle connections must
// not hold a large one each.
const idleBuffer = 512

// pump hands on one stream until it ends. What nobody wants any more is read
// and dropped, so that the channel can end.
func (s *session) pump(r io.Reader, stream fleet.Stream) {
	var idle [idleBuffer]byte
	var bulk *channel.Buffer
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
				channel.GiveBuffer(bulk)
			}
			return
		case full && bulk == nil:
			bulk = channel.TakeBuffer()
			buf = bulk[:]
		case bulk != nil && n < idleBuffer:
			channel.GiveBuffer(bulk)
			bulk, buf = nil, idle[:]
		}
	}
}
