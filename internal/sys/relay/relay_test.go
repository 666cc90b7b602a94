package relay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that sends back what it gets.
func echo(t testing.TB) string {
	t.Helper()
	return sshtest.Answering(t, func(c net.Conn) { io.Copy(c, c) }).String()
}

// through connects to an echo through a relay.
func through(t testing.TB, o Options) (net.Conn, *Relay) {
	t.Helper()
	r, err := To(echo(t), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); r.Close() })
	return c, r
}

// ask sends one byte and waits for it; it returns what that took.
func ask(t testing.TB, c net.Conn) time.Duration {
	t.Helper()
	began := time.Now()
	if _, err := c.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// Nothing arrives before its time: a question takes a round trip, the first one two (TCP's
// handshake), and a hundred others that are sent at once take one.
func TestDelay(t *testing.T) {
	const delay = 20 * time.Millisecond
	opened := time.Now()
	c, _ := through(t, Options{Path: Path{Delay: delay}})
	ask(t, c)
	if first := time.Since(opened); first < 4*delay { // three to connect late, meanwhile the question, and one back
		t.Errorf("the first answer came after %v", first)
	}
	if took := ask(t, c); took < 2*delay {
		t.Errorf("an answer came after %v", took)
	}
	began := time.Now()
	for range 100 {
		c.Write([]byte{1})
		time.Sleep(100 * time.Microsecond)
	}
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 2*delay || took > time.Minute {
		t.Errorf("a hundred questions at once took %v", took)
	}
}

// The bytes are the same ones, in order, with everything that a path can do; and the end of a
// direction leaves the other open.
func TestBytesAreKept(t *testing.T) {
	for name, p := range map[string]Path{
		"plain":   {},
		"delayed": {Delay: time.Millisecond},
		"limited": {Rate: 50e6},
		"lossy":   {Loss: Loss{Share: 0.01, Stall: time.Millisecond, Seed: 1}},
		"all":     {Delay: time.Millisecond, Rate: 50e6, Loss: Loss{Share: 0.01, Stall: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := through(t, Options{Path: p})
			sent := make([]byte, 3<<20)
			for i := range sent {
				sent[i] = byte(i * i >> 7)
			}
			go func() { c.Write(sent); c.(*net.TCPConn).CloseWrite() }()
			got, err := io.ReadAll(c)
			if err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d bytes of %d came back, %v", len(got), len(sent), err)
			}
		})
	}
}

// A megabyte at 10 MB/s takes a tenth of a second each way, and both ways go on at the same time.
func TestRate(t *testing.T) {
	c, _ := through(t, Options{Path: Path{Rate: 10e6}})
	began := time.Now()
	go func() { c.Write(make([]byte, 1e6)); c.(*net.TCPConn).CloseWrite() }()
	n, err := io.Copy(io.Discard, c)
	if took := time.Since(began); n != 1e6 || err != nil || took < 100*time.Millisecond {
		t.Errorf("%d bytes in %v, %v", n, took, err)
	}
}

// Connections share the link: two take as long for a megabyte as one for two, and none waits for
// long behind the bytes of another.
func TestConnectionsShareTheRate(t *testing.T) {
	a, r := through(t, Options{Path: Path{Rate: 10e6}})
	b, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	began := time.Now()
	var both sync.WaitGroup
	for _, c := range []net.Conn{a, b} {
		both.Go(func() { c.Write(make([]byte, 1e6)); c.(*net.TCPConn).CloseWrite() })
		both.Go(func() { io.Copy(io.Discard, c) })
	}
	both.Wait()
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("two megabytes over two connections took %v at 10 MB/s", took)
	}
}

// What is on the way is bounded: who sends more than the other end reads has to wait.
func TestBounded(t *testing.T) {
	c, _ := through(t, Options{Path: Path{Delay: time.Millisecond}})
	c.SetWriteDeadline(time.Now().Add(time.Second))
	const much = 64 << 20 // as much fits into no two sockets and this path
	if n, err := c.Write(make([]byte, much)); err == nil {
		t.Errorf("%d bytes are on the way", n)
	}
}

// What waits leaves in the order in which it came, and does not grow for ever.
func TestFifo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f fifo
		first, next := 0, 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			if f.empty() != (first == next) || f.held != next-first || cap(f.chunks) > 4*(next-first)+64 && cap(f.chunks) > 256 {
				t.Fatalf("%d chunks wait: %d bytes, room for %d", next-first, f.held, cap(f.chunks))
			}
			if f.empty() || rapid.Bool().Draw(t, "put") {
				f.put(chunk{data: []byte{byte(next)}})
				next++
				continue
			}
			if got := f.first().data[0]; got != byte(first) {
				t.Fatalf("%d leaves, and not %d", got, first)
			}
			f.take()
			first++
		}
	})
}

// A loss holds up what is behind it, and the same seed loses the same segments.
func TestLoss(t *testing.T) {
	path := Path{Loss: Loss{Share: 0.3, Stall: 30 * time.Millisecond, Seed: 7}}
	losses := func() (lost []bool) {
		schedule := newSchedule(path, Up, &link{})
		for range 50 {
			lost = append(lost, schedule.stall(100) > 0)
		}
		return lost
	}
	if a, b := losses(), losses(); !slices.Equal(a, b) || !slices.Contains(a, true) || !slices.Contains(a, false) {
		t.Errorf("losses %v, then %v", a, b)
	}
	schedule, now := newSchedule(Path{Loss: Loss{Share: 1}}, Up, &link{}), time.Unix(0, 0)
	if first, second := schedule.due(now, 1), schedule.due(now.Add(time.Millisecond), 0); first.Sub(now) != leastStall || second.Before(first) {
		t.Errorf("lost bytes arrive after %v, the end after %v", first.Sub(now), second.Sub(now))
	}
}

// Freeze leaves the connection open; Cut resets it, and so does the server's absence.
func TestFaults(t *testing.T) {
	c, r := through(t, Options{})
	ask(t, c)
	r.Freeze()
	c.Write([]byte{1})
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n != 0 || err == nil || !err.(net.Error).Timeout() {
		t.Errorf("a frozen relay gave %d bytes, %v", n, err)
	}
	r.Cut()
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c.Read(make([]byte, 1)); err == nil || err == io.EOF || err.(net.Error).Timeout() {
		t.Errorf("a connection that was cut says %v", err)
	}

	gone, err := To("127.0.0.1:1", Options{Path: Path{Delay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	c2, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", gone.Port()))
	if err != nil {
		t.Fatal(err)
	}
	defer c2.Close()
	c2.SetReadDeadline(time.Now().Add(time.Minute))
	if _, err := c2.Read(make([]byte, 1)); err == nil || err.(net.Error).Timeout() {
		t.Errorf("without a server: %v", err)
	}
}

// A fault befalls one connection, after as many of the server's bytes as it says; what the client
// says still arrives.
func TestFail(t *testing.T) {
	for _, how := range []End{Silence, Finish, Reset} {
		c, r := through(t, Options{})
		ask(t, c)
		r.Fail(Fault{After: 3, How: how, Later: 20 * time.Millisecond})
		c.Write([]byte("hello"))
		got := make([]byte, 5)
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if n, err := io.ReadFull(c, got[:3]); err != nil {
			t.Fatalf("end %d: %d bytes, %v", how, n, err)
		}
		if how == Silence {
			c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		}
		n, err := c.Read(got)
		timeout := net.Error(nil)
		silent := errors.As(err, &timeout) && timeout.Timeout()
		if n > 0 || silent != (how == Silence) || (err == io.EOF) != (how == Finish) {
			t.Errorf("end %d: %d bytes more, %v", how, n, err)
		}
		other, err := net.Dial("tcp", c.RemoteAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		ask(t, other)
		other.Close()
	}
}

// Close ends connections in every state, also those that still wait to be connected, and leaves
// nothing behind (TestMain).
func TestClose(t *testing.T) {
	for _, delay := range []time.Duration{0, time.Millisecond, time.Hour} {
		c, r := through(t, Options{Path: Path{Delay: delay}})
		c.Write([]byte{1})
		time.Sleep(5 * time.Millisecond)
		r.Close()
		c.SetReadDeadline(time.Now().Add(time.Minute))
		if _, err := io.ReadAll(c); err != nil && err.(net.Error).Timeout() {
			t.Errorf("delay %v: the connection outlives the relay", delay)
		}
	}
}

// What is told of the bytes is what went past, in the order of the stamps.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	got := map[Direction][]byte{}
	last := map[Direction]time.Time{}
	ended := make(chan struct{}, 2)
	delay := 2 * time.Millisecond
	c, _ := through(t, Options{Path: Path{Delay: delay}, Watch: func(s Seen) {
		mu.Lock()
		defer mu.Unlock()
		got[s.Dir] = append(got[s.Dir], s.Data...)
		if s.Conn != 1 || s.Left.Before(last[s.Dir]) || s.Left.Sub(s.Arrived) < delay {
			t.Errorf("conn %d, %v after it arrived, %v after the one before", s.Conn, s.Left.Sub(s.Arrived), s.Left.Sub(last[s.Dir]))
		}
		last[s.Dir] = s.Left
		if len(s.Data) == 0 {
			ended <- struct{}{}
		}
	}})
	go func() { c.Write([]byte("hello")); c.(*net.TCPConn).CloseWrite() }()
	io.ReadAll(c)
	<-ended
	<-ended
	mu.Lock()
	defer mu.Unlock()
	if string(got[Up]) != "hello" || string(got[Down]) != "hello" {
		t.Errorf("seen up %q, down %q", got[Up], got[Down])
	}
}

// Bytes leave about as late as a thread that does nothing but sleep until they are due: both in
// turns, and half of the turns decide, because what stops the machine for a while is in single
// ones. (In ms, and with ssh: crosscheck/relay.)
func TestOwnDelay(t *testing.T) {
	const rate, turns, most = 12e6, 9, 6
	waittest.Until(t, "bytes that leave in time", func() bool { // whatever else the machine does may hit one of the two
		var relayed, bare []time.Duration
		for range turns {
			var late lateness
			c, r := through(t, Options{Path: Path{Rate: rate}, Watch: late.watch})
			ask(t, c)
			go c.Write(make([]byte, rate/10))
			if _, err := io.ReadFull(c, make([]byte, rate/10)); err != nil {
				t.Fatal(err)
			}
			r.Close()
			relayed = append(relayed, late.most())
			bare = append(bare, sleptUntil(t, together, len(late.all)/2))
		}
		slices.Sort(relayed)
		slices.Sort(bare)
		t.Logf("relay %v, bare %v", relayed, bare)
		return relayed[turns/2] <= most*bare[turns/2]
	})
}

// lateness is how late bytes leave.
type lateness struct {
	mu  sync.Mutex
	all []time.Duration
}

func (l *lateness) watch(s Seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !s.Waited {
		l.all = append(l.all, s.Left.Sub(s.Due))
	}
}

// most is what nine of ten keep.
func (l *lateness) most() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.all)
	return l.all[len(l.all)*9/10]
}

// sleptUntil sleeps until so many moments, one after the other, and says within what it wakes up
// nine of ten times.
func sleptUntil(t *testing.T, each time.Duration, times int) time.Duration {
	done := make(chan *lateness)
	go func() {
		punctual()
		var late lateness
		when := time.Now()
		for range times {
			when = when.Add(each)
			sleepUntil(t.Context(), when)
			late.watch(Seen{Due: when, Left: time.Now()})
		}
		done <- &late
	}()
	return (<-done).most()
}
