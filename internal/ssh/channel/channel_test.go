package channel

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the other end of a Conn: what it says comes from the test, and what it is told waits
// for the test.
type server struct {
	says, told chan []byte
	closed     chan struct{}
	once       sync.Once
}

func newServer() *server {
	return &server{says: make(chan []byte), told: make(chan []byte, 100), closed: make(chan struct{})}
}

func (s *server) Receive([]byte) ([]byte, error) {
	select {
	case p := <-s.says:
		return p, nil
	case <-s.closed:
		return nil, io.EOF
	}
}

func (s *server) Send(list ...[]byte) error {
	for _, p := range list {
		s.told <- bytes.Clone(p)
	}
	return nil
}

func (s *server) SendData(head, data []byte, most int) error {
	for part := range slices.Chunk(data, most) {
		s.told <- AppendText(bytes.Clone(head), part)
	}
	return nil
}

func (s *server) Close() error { s.once.Do(func() { close(s.closed) }); return nil }

// say says something, unless the connection has ended.
func (s *server) say(p []byte) {
	select {
	case s.says <- p:
	case <-s.closed:
	}
}

func message(kind byte, numbers ...uint32) []byte {
	p := []byte{kind}
	for _, n := range numbers {
		p = AppendNumber(p, n)
	}
	return p
}

func data(n int) []byte { return AppendText(message(msgData, 0), make([]byte, n)) }

// taker is a Handler that counts.
type taker struct {
	out, err, eofs, closes int
	requests               []string
}

func (k *taker) Data(stderr bool, data []byte) int {
	if stderr {
		k.err += len(data)
	} else {
		k.out += len(data)
	}
	return len(data)
}
func (k *taker) EOF()                          { k.eofs++ }
func (k *taker) Closed()                       { k.closes++ }
func (k *taker) Request(name string, _ []byte) { k.requests = append(k.requests, name) }

// opened is a channel that the server numbers 7, and takes 10 bytes on, 4 at once.
func opened(t *testing.T, s *server, to Handler) (*Conn, *Channel) {
	t.Helper()
	c := New(s, nil, 0)
	t.Cleanup(func() { c.Close(); <-c.Done() })
	go s.say(message(msgConfirmation, 0, 7, 10, 4))
	ch, err := c.Open("session", nil, to)
	if err != nil {
		t.Fatal(err)
	}
	<-s.told
	return c, ch
}

// TestProtocolErrors: what a server may not say ends the connection.
func TestProtocolErrors(t *testing.T) {
	for name, says := range map[string][]byte{
		"a channel that is not open":  message(msgEOF, 1),
		"a second confirmation":       message(msgConfirmation, 0, 8, 10, 4),
		"a refusal after all":         AppendText(message(msgOpenFailure, 0, 1), "no"),
		"an answer to nothing":        message(msgSuccess, 0),
		"more than may come at once":  data(maxPacket + 1),
		"a window beyond all":         message(msgWindowAdjust, 0, 1<<32-5),
		"data that is cut":            message(msgData, 0, 5),
		"a message of authentication": {52},
		"a request that is cut":       message(msgRequest, 0, 99),
		"no number at all":            {msgEOF},
	} {
		s := newServer()
		c, _ := opened(t, s, &taker{})
		s.say(says)
		if err := c.Wait(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTooMuch: a server that sends more than it was allowed is cut off, and one that keeps to what
// it is told is not.
func TestTooMuch(t *testing.T) {
	s, k := newServer(), &taker{}
	_, ch := opened(t, s, k)
	for sent := 0; sent < 3*window; sent += maxPacket {
		s.say(data(maxPacket))
	}
	s.say(data(0)) // all before it has been handed over
	allowed := window
	for len(s.told) > 0 {
		f := FieldsOf(<-s.told)
		if f.Number() != 7 {
			t.Error("a window for another channel")
		}
		allowed += int(f.Number())
	}
	if most := int(ch.grant.size); allowed > most+k.out || allowed < k.out+most-window/2 {
		t.Errorf("%d bytes came, %d are allowed", k.out, allowed)
	}

	s = newServer()
	kept := &keeper{}
	c, _ := opened(t, s, kept)
	for sent := 0; sent <= window; sent += maxPacket {
		s.say(data(maxPacket))
	}
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "were allowed") || kept.out > window {
		t.Errorf("%v after %d bytes", err, kept.out)
	}
}

// keeper takes nothing.
type keeper struct{ taker }

func (k *keeper) Data(_ bool, data []byte) int { k.out += len(data); return 0 }

// TestWrite: no more is sent than the server takes, and no more at once.
func TestWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		_, ch := opened(t, s, &taker{})
		go func() {
			_, _ = io.WriteString(ch, "0123456789abc")
			_ = ch.CloseWrite()
			_ = ch.CloseWrite()
		}()
		synctest.Wait()
		text := func() (all []string) {
			for len(s.told) > 0 {
				p := <-s.told
				f := FieldsOf(p)
				f.Number()
				if p[0] == msgData {
					all = append(all, string(f.Text()))
				} else {
					all = append(all, "end")
				}
			}
			return all
		}
		if got := text(); !slices.Equal(got, []string{"0123", "4567", "89"}) {
			t.Errorf("sent %q", got)
		}
		s.say(message(msgWindowAdjust, 0, 5))
		synctest.Wait()
		if got := text(); !slices.Equal(got, []string{"abc", "end"}) {
			t.Errorf("then sent %q", got)
		}
	})
}

// TestWishes: whatever a server wants is refused.
func TestWishes(t *testing.T) {
	s, k := newServer(), &taker{}
	opened(t, s, k)
	s.say(AppendBool(AppendText([]byte{msgGlobalRequest}, "keepalive@openssh.com"), true))
	if p := <-s.told; !bytes.Equal(p, []byte{msgRequestFailure}) {
		t.Errorf("to a sign of life: %v", p)
	}
	s.say(AppendNumber(AppendText([]byte{msgOpen}, "auth-agent@openssh.com"), 3))
	if f := FieldsOf(<-s.told); f.Number() != 3 || f.Number() != uint32(ssh.Prohibited) {
		t.Error("the agent is not refused")
	}
	s.say(AppendBool(AppendText(message(msgRequest, 0), "x11-req"), true))
	if p := <-s.told; !bytes.Equal(p, message(msgFailure, 7)) {
		t.Errorf("to a request: %v", p)
	}
	s.say(AppendText(message(msgExtendedData, 0, 1), "err"))
	s.say(AppendText(message(msgExtendedData, 0, 2), "of no known kind"))
	s.say(message(msgEOF, 0))
	s.say(message(msgClose, 0))
	if p := <-s.told; !bytes.Equal(p, message(msgClose, 7)) {
		t.Errorf("to the end: %v", p)
	}
	if k.err != 3 || k.out != 0 || k.eofs != 1 || !slices.Equal(k.requests, []string{"x11-req"}) {
		t.Errorf("handed over: %+v", k)
	}
}

// TestEnds: the end of a channel, and of the connection, wakes whoever waits.
func TestEnds(t *testing.T) {
	for _, cut := range []bool{false, true} {
		s, k := newServer(), &taker{}
		c, ch := opened(t, s, k)
		var waits sync.WaitGroup
		waits.Go(func() {
			if _, err := ch.Write(make([]byte, 100)); !errors.Is(err, io.EOF) {
				t.Errorf("Write: %v", err)
			}
		})
		waits.Go(func() {
			if _, err := ch.SendRequest("exec", true, nil); !errors.Is(err, io.EOF) {
				t.Errorf("SendRequest: %v", err)
			}
		})
		if cut {
			waits.Go(func() {
				if _, _, err := c.SendRequest("keepalive", true, nil); err == nil {
					t.Error("an answer from nobody")
				}
			})
		}
		for range 4 { // three pieces of data and a request
			<-s.told
		}
		if cut {
			c.Close()
		} else {
			s.say(message(msgClose, 0))
		}
		waits.Wait()
		<-ch.Done()
		if k.closes != 1 {
			t.Errorf("told of the end %d times", k.closes)
		}
	}
}

// holding is a server to which one kind of message takes long.
type holding struct {
	*server
	kind     byte
	leaving  chan struct{}
	released chan struct{}
}

func (h *holding) hold(kind byte) {
	if kind == h.kind {
		close(h.leaving)
		<-h.released
	}
}

func (h *holding) Send(list ...[]byte) error {
	h.hold(list[0][0])
	return h.server.Send(list...)
}

func (h *holding) SendData(head, data []byte, most int) error {
	h.hold(head[0])
	return h.server.SendData(head, data, most)
}

// TestNothingAfterClose: nothing follows our end of a channel, whose number may be another one's
// then, or be an error that ends the connection.
func TestNothingAfterClose(t *testing.T) {
	for kind, act := range map[byte]func(*Channel){
		msgData:         func(ch *Channel) { _, _ = ch.Write([]byte("data")) },
		msgEOF:          func(ch *Channel) { _ = ch.CloseWrite() },
		msgRequest:      func(ch *Channel) { _, _ = ch.SendRequest("signal", false, nil) },
		msgWindowAdjust: func(ch *Channel) { ch.Took(window) },
	} {
		h := &holding{newServer(), kind, make(chan struct{}), make(chan struct{})}
		c := New(h, nil, 0)
		go func() {
			h.say(message(msgConfirmation, 0, 7, 10, 4))
			h.say(data(maxPacket))
		}()
		ch, err := c.Open("session", nil, &keeper{})
		if err != nil {
			t.Fatal(err)
		}
		acted := make(chan struct{})
		go func() { act(ch); close(acted) }()
		<-h.leaving
		h.say(message(msgClose, 0))
		select {
		case <-ch.Done():
		case <-time.After(20 * time.Millisecond): // it waits
		}
		close(h.released)
		<-acted
		<-ch.Done()
		c.Close()
		<-c.Done()
		close(h.told)
		last := byte(0)
		for p := range h.told {
			last = p[0]
		}
		if last != msgClose {
			t.Errorf("message %d follows the end", last)
		}
	}
}

// TestRefused: a refusal is told in x/crypto's words, and the next channel opens.
func TestRefused(t *testing.T) {
	s := newServer()
	c := New(s, nil, 0)
	go s.say(AppendText(AppendText(message(msgOpenFailure, 0, 4), "too\xff many"), ""))
	var open *ssh.OpenChannelError
	if _, err := c.Open("session", nil, &taker{}); !errors.As(err, &open) || open.Reason != ssh.ResourceShortage || open.Message != "too? many" {
		t.Errorf("%v", err)
	}
	go s.say(message(msgConfirmation, 1, 0, 1, 1))
	if _, err := c.Open("session", nil, &taker{}); err != nil {
		t.Error(err)
	}
	c.Close()
	<-c.Done()
	if _, err := c.Open("session", nil, &taker{}); err == nil {
		t.Error("a channel of a connection that is closed")
	}
}

// TestAhead: what was sent ahead is not sent again, its answers may come before it is asked for,
// and a server that counts otherwise is not believed.
func TestAhead(t *testing.T) {
	ahead := [][]byte{Open("session", 0, nil), Request(0, "exec", true, Text("true")), EOF(0)}
	s := newServer()
	c := New(s, ahead, 1)
	c.start()
	k := &taker{}
	go func() {
		for _, p := range [][]byte{message(msgConfirmation, 0, 0, 10, 10), message(msgSuccess, 0), data(3), message(msgClose, 0)} {
			s.say(p)
		}
	}()
	ch, err := c.Open("session", nil, k)
	if err != nil {
		t.Fatal(err)
	}
	<-ch.Done()
	if ok, err := ch.SendRequest("exec", true, Text("true")); !ok || err != nil {
		t.Errorf("the answer is %v, %v", ok, err)
	}
	if err := ch.CloseWrite(); err != nil || k.out != 3 {
		t.Errorf("%v, %d bytes", err, k.out)
	}
	if p := <-s.told; !bytes.Equal(p, message(msgClose, 0)) || len(s.told) > 0 {
		t.Errorf("sent %v", p)
	}
	c.Close()

	s = newServer()
	c = New(s, ahead, 1)
	go s.say(message(msgConfirmation, 0, 9, 10, 10))
	if _, err := c.Open("session", nil, &taker{}); !errors.Is(err, errNumber) {
		t.Errorf("a channel with another number: %v", err)
	}
	<-c.Done()

	c = New(newServer(), ahead, 1)
	if _, err := c.Open("direct-tcpip", nil, &taker{}); !errors.Is(err, errOtherWords) {
		t.Errorf("another channel: %v", err)
	}
	c.Close()
}

// TestStream: a channel that is read keeps what comes until it is read, and tells the server then.
func TestStream(t *testing.T) {
	s := newServer()
	c := New(s, nil, 0)
	defer func() { c.Close(); <-c.Done() }()
	go s.say(message(msgConfirmation, 0, 7, 10, 4))
	ch, reqs, err := c.OpenChannel("session", nil)
	if err != nil {
		t.Fatal(err)
	}
	<-s.told
	for range window / maxPacket {
		s.say(data(maxPacket))
	}
	if len(s.told) > 0 {
		t.Error("a window for what was not read")
	}
	if n, err := io.ReadFull(ch, make([]byte, window)); n != window || err != nil {
		t.Error(n, err)
	}
	if len(s.told) == 0 {
		t.Error("no window for what was read")
	}
	s.say(AppendText(message(msgExtendedData, 0, 1), "err"))
	s.say(append(AppendBool(AppendText(message(msgRequest, 0), "exit-status"), false), 0, 0, 0, 3))
	s.say(message(msgClose, 0))
	if text, err := io.ReadAll(ch.Stderr()); string(text) != "err" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	r := <-reqs
	if _, more := <-reqs; more || r.Type != "exit-status" || !bytes.Equal(r.Payload, []byte{0, 0, 0, 3}) {
		t.Errorf("%+v", r)
	}
	if n, err := ch.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Error(n, err)
	}
}

// script says what it was given and then ends.
type script struct{ says [][]byte }

func (s *script) Receive([]byte) ([]byte, error) {
	if len(s.says) == 0 {
		return nil, io.EOF
	}
	p := s.says[0]
	s.says = s.says[1:]
	return p, nil
}
func (*script) Send(...[]byte) error { return nil }

func (*script) SendData([]byte, []byte, int) error { return nil }

func (*script) Close() error { return nil }

// FuzzServer: whatever a server says, a session ends, is handed no more than was allowed, and told
// of its end once.
func FuzzServer(f *testing.F) {
	f.Add(slices.Concat(message(msgConfirmation, 0, 0, 10, 10), []byte{0xfe}, message(msgSuccess, 0), []byte{0xfe}, data(3), []byte{0xfe}, message(msgClose, 0)), true)
	f.Add(slices.Concat(message(msgOpenFailure, 0, 1), []byte{0xfe}, message(msgClose, 0)), false)
	f.Fuzz(func(t *testing.T, says []byte, ahead bool) {
		var s script
		for p := range bytes.SplitSeq(says, []byte{0xfe}) {
			if len(p) > 0 {
				s.says = append(s.says, p)
			}
		}
		c := New(&s, nil, 0)
		if ahead {
			c = New(&s, [][]byte{Open("session", 0, nil), Request(0, "exec", true, nil)}, 1)
		}
		k := &taker{}
		ch, err := c.Open("session", nil, k)
		if err == nil {
			_, _ = ch.SendRequest("exec", true, nil)
			_, _ = ch.Write([]byte("x"))
			<-ch.Done()
		}
		c.Close()
		<-c.Done()
		if k.closes != 1 || k.out+k.err > len(says) {
			t.Errorf("%+v", k)
		}
	})
}

// stuck is a Handler whose Data waits.
type stuck struct {
	taker
	came, release chan struct{}
}

func newStuck() *stuck { return &stuck{came: make(chan struct{}), release: make(chan struct{})} }

func (k *stuck) Data(stderr bool, data []byte) int {
	if k.out == 0 {
		close(k.came)
		<-k.release
	}
	return k.taker.Data(stderr, data)
}

// TestStuckReader: while the reader of one channel waits, others of its connection are opened,
// read, answered and closed; the data that came for it meanwhile is handed over then, in order.
func TestStuckReader(t *testing.T) {
	for _, late := range []bool{false, true} { // the second channel is opened once the first is stuck
		s, k, other := newServer(), newStuck(), &taker{}
		c, one := opened(t, s, k)
		first := func() {
			s.say(AppendText(message(msgData, 0), "first"))
			<-k.came
		}
		if late {
			first()
		}
		go func() {
			<-s.told
			s.say(message(msgConfirmation, 1, 8, 10, 4))
		}()
		ch, err := c.Open("session", nil, other)
		if err != nil {
			t.Fatal(err)
		}
		if !late {
			first()
		}
		answered := make(chan bool)
		go func() {
			ok, _ := ch.SendRequest("exec", true, nil)
			answered <- ok
		}()
		s.say(AppendText(message(msgData, 0), "second"))
		for p := range s.told {
			if p[0] == msgRequest {
				break
			}
		}
		s.say(message(msgSuccess, 1))
		if !<-answered {
			t.Error("no answer beside a channel that is stuck")
		}
		s.say(AppendText(message(msgData, 1), "text"))
		s.say(append(AppendBool(AppendText(message(msgRequest, 0), "exit-status"), false), 0, 0, 0, 3))
		s.say(message(msgClose, 1))
		<-ch.Done()
		if other.out != 4 || other.closes != 1 || c.Stuck() {
			t.Errorf("late %v: the other one: %+v", late, other)
		}
		s.say(message(msgClose, 0))
		close(k.release)
		s.say(message(msgGlobalRequest)) // is cut: the end of the connection
		<-c.Done()
		<-one.Done()
		if k.out != len("firstsecond") || k.closes != 1 || !slices.Equal(k.requests, []string{"exit-status"}) {
			t.Errorf("late %v: handed over: %+v", late, k.taker)
		}
	}
}

// TestAnswerBehindStuckReader: an answer arrives although the output before it is not taken.
func TestAnswerBehindStuckReader(t *testing.T) {
	for _, late := range []bool{false, true} { // the request is made once the channel is stuck
		synctest.Test(t, func(t *testing.T) {
			s, k := newServer(), newStuck()
			_, ch := opened(t, s, k)
			answered := make(chan bool, 1)
			ask := func() {
				go func() {
					ok, _ := ch.SendRequest("signal", true, Text("TERM"))
					answered <- ok
				}()
				<-s.told
				synctest.Wait()
			}
			if !late {
				ask()
			}
			go s.say(data(3))
			if <-k.came; late {
				ask()
			}
			go s.say(message(msgSuccess, 0))
			synctest.Wait()
			if len(answered) == 0 {
				t.Errorf("late %v: no answer", late)
			}
			close(k.release)
			<-answered
		})
	}
}
