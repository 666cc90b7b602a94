package copy

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/ssh/sftp"
)

const (
	// longPath is a round trip over which sshd's window limits the speed: 2 MiB in 5 ms are
	// 400 MB/s.
	longPath = 5 * time.Millisecond
	// laneBytes is an amount that is worth a lane: a lane costs the host a process.
	laneBytes = 4 << 20
	// mostLanes leaves room for commands within sshd's MaxSessions, which is 10.
	mostLanes = 8
	// mostAhead bounds the distance between the first byte of a file that the host may lack and the
	// last one that was sent to it: as much as all lanes have in flight.
	mostAhead = mostLanes * sftp.LeastInFlight
	// memory is the amount of file content in flight from and to all hosts together.
	memory = 512 << 20
)

// inFlight is how many bytes of one host may be in flight.
func (o *Options) inFlight() int {
	if o.Hosts == 0 {
		return sftp.LeastInFlight
	}
	return min(max(memory/o.Hosts, sftp.LeastInFlight), sftp.MostInFlight)
}

// lanes are SFTP sessions side by side on one connection: sshd grants each a window of its own. The
// first one is the client.
type lanes struct {
	mu     sync.Mutex
	asked  []func() *sftp.Client // further ones, by number; nil where the host refuses
	open   []*sftp.Client
	most   int  // 0: the host has refused none
	beside bool // it has opened one beside the first one
	next   int  // turn of the lane for the next small file
	opened sync.WaitGroup
}

// wanted is how many lanes an amount of data is worth.
func (s *side) wanted(bytes int64) int {
	trip := s.client.RoundTrip()
	if trip < longPath {
		return 1
	}
	n := min(int(sched.UsualRate*trip.Seconds()/float64(unit.ChannelWindow))+1, int(min(bytes/laneBytes, mostLanes)), s.inFlight()/sftp.LeastInFlight)
	return max(1, min(n, s.beside.limit()))
}

// limit returns the most lanes that the host may open, the first included.
func (l *lanes) limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return cmp.Or(l.most, mostLanes)
}

// refuse records that the host opens no more sessions, of which one is left for commands.
func (l *lanes) refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.most = max(1, len(l.open))
}

// has records sessions that the host has opened beside the first one.
func (l *lanes) has(client ...*sftp.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.beside = append(l.open, client...), true
}

// leaveRoom closes the lanes that the host has no session for beside a command: none is in use
// then. It reports whether a session may become free in a moment.
func (l *lanes) leaveRoom() bool {
	l.opened.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.most == 0 || len(l.open) < l.most {
		return l.most > 0 && l.beside
	}
	for _, c := range l.open[l.most-1:] {
		c.Close()
	}
	l.open, l.asked = l.open[:l.most-1], nil
	for _, c := range l.open {
		l.asked = append(l.asked, func() *sftp.Client { return c })
	}
	return true
}

// lane returns a lane, nil where the host opens no more. The first use opens it.
func (s *side) lane(number int) *sftp.Client {
	if number == 0 {
		return s.client
	}
	s.beside.mu.Lock()
	for len(s.beside.asked) < number {
		s.beside.asked = append(s.beside.asked, sync.OnceValue(s.openLane))
	}
	open := s.beside.asked[number-1]
	s.beside.mu.Unlock()
	return open()
}

func (s *side) openLane() *sftp.Client {
	ch, err := s.ch.Open(s.ctx, subsystem)
	if err != nil {
		s.beside.refuse()
		return nil
	}
	client, err := s.client.Beside(ch)
	if err != nil {
		s.beside.refuse()
		ch.Close()
		return nil
	}
	s.beside.has(client)
	return client
}

// openLanes begins to open the lanes for the large ones of the files: a session takes the host some
// time. Small files mostly go in packs, which need sessions of their own.
func (p *put) openLanes(files []*placed) {
	var most int64
	small := 0
	for _, to := range files {
		most = max(most, to.size)
		if to.size < large {
			small++
		}
	}
	if small >= worthwhile {
		return
	}
	for number := range p.wanted(most) {
		p.beside.opened.Go(func() { p.lane(number) })
	}
}

// subsystem is the name of SFTP (RFC 4254 section 6.5).
const subsystem = "sftp"

// turn returns the lane for the next small file, of those that are open by now.
func (s *side) turn() *sftp.Client {
	s.beside.mu.Lock()
	defer s.beside.mu.Unlock()
	n := s.beside.next % (len(s.beside.open) + 1)
	s.beside.next = n + 1
	if n == 0 {
		return s.client
	}
	return s.beside.open[n-1]
}

// close ends the lanes.
func (l *lanes) close() {
	l.opened.Wait()
	for _, c := range l.open {
		c.Close()
	}
}

// atOnce is how many small requests a host gets at a time: more over a long path, as long as the
// hosts together have not too many.
func (s *side) atOnce() int {
	more := min(s.client.RoundTrip()/longPath, time.Duration(s.inFlight()/sftp.LeastInFlight), 16)
	return leastAtOnce * max(1, int(more))
}

// open opens a file. A server that has no room for as many open files as a long path asks for
// refuses without a reason: it is asked again when others are closed.
func (s *side) open(client *sftp.Client, name string, how uint32, perm fs.FileMode) (*sftp.File, error) {
	f, err := client.Open(name, how, perm)
	for tries := 0; isFailure(err) && s.atOnce() > leastAtOnce && tries < maxRoomTries && sched.For(s.ctx, roomPause); tries++ {
		f, err = client.Open(name, how, perm)
	}
	return f, err
}

// striped hands out the pieces of a file in order, and bounds how far the lanes are apart.
type striped struct {
	mu     sync.Mutex
	moved  sync.Cond
	next   int64
	size   int64
	oldest []int64 // of each lane, where its first piece without an answer begins; MaxInt64: there is none
	err    error   // why no more is handed out

	closing sync.WaitGroup // the lanes beside the first one close the file
}

func newStriped(from, size int64, lanes int) *striped {
	s := &striped{next: from, size: size, oldest: make([]int64, lanes)}
	s.moved.L = &s.mu
	for i := range s.oldest {
		s.oldest[i] = math.MaxInt64
	}
	return s
}

// piece returns the next piece of at most most bytes for a lane. n is 0 at the end, and where the
// lane has to wait for its own answers first.
func (s *striped) piece(lane int, most int64) (at int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.isAhead() && s.oldest[lane] == math.MaxInt64 {
		s.moved.Wait()
	}
	if s.err != nil || s.isAhead() {
		return s.next, 0
	}
	at, n = s.next, int(min(most, s.size-s.next))
	s.next += int64(n)
	s.oldest[lane] = min(s.oldest[lane], at)
	return at, n
}

// isAhead reports whether the next piece is too far ahead of the first one without an answer.
func (s *striped) isAhead() bool {
	return s.err == nil && s.next < s.size && s.next-slices.Min(s.oldest) > mostAhead
}

// answered notes where the first piece of a lane without an answer begins now.
func (s *striped) answered(lane int, oldest int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest[lane] = oldest
	s.moved.Broadcast()
}

// fail stops all lanes.
func (s *striped) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = cmp.Or(s.err, err)
	s.moved.Broadcast()
}

// sent is a piece without an answer.
type sent struct {
	at   int64
	wait sftp.Pending
}

// stream sends the content of a file from to.from on. finish is called as soon as everything is
// sent; where that is over one lane, the answers may still be awaited. closed
// waits until the other lanes have closed the file.
func (p *put) stream(f *sftp.File, name string, r io.ReaderAt, to *placed, finish func()) (closed func(), err error) {
	lanes := p.wanted(to.size - to.from)
	s := newStriped(to.from, to.size, lanes)
	defer context.AfterFunc(p.ctx, func() { s.fail(context.Cause(p.ctx)) })()
	if lanes == 1 {
		finish = sync.OnceFunc(finish)
		p.sendPieces(s, 0, f, r, finish)
		finish()
		return func() {}, s.err
	}
	sched.Do(lanes, lanes, func(i int) {
		if i == 0 {
			p.sendPieces(s, 0, f, r, func() {})
		} else if client := p.lane(i); client != nil {
			if beside, err := client.Open(name, sftp.Write, 0); err == nil {
				p.sendPieces(s, i, beside, r, func() {})
				s.closing.Go(func() { beside.Close().Wait() })
			}
		}
	})
	finish()
	return s.closing.Wait, s.err
}

// sendPieces sends pieces over one lane, with many requests in flight.
func (p *put) sendPieces(s *striped, lane int, f *sftp.File, r io.ReaderAt, finish func()) {
	buf := buffers.Get().(*chunk)
	defer buffers.Put(buf)
	var pending []sent
	for {
		at, n := s.piece(lane, int64(p.Limit.piece(f.Chunk())))
		if n > 0 {
			got, err := (limited{r, &p.side}).ReadAt(buf[:n], at)
			if got == n {
				pending = append(pending, sent{at, f.WriteAt(buf[:n], at)})
			} else if s.fail(errChanged); err != nil && !errors.Is(err, io.EOF) {
				s.fail(err)
			}
		} else if finish(); len(pending) == 0 {
			return
		}
		if n == 0 || len(pending) == maxRequests {
			s.fail(pending[0].wait.Wait())
			pending = pending[1:]
			oldest := int64(math.MaxInt64)
			if len(pending) > 0 {
				oldest = pending[0].at
			}
			s.answered(lane, oldest)
		}
	}
}
