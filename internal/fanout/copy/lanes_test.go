package copy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/fleet"
)

// distant is a host behind a long path: its answers come late. All of its sessions end together
// when it dies.
type distant struct {
	*server
	t      *testing.T
	most   int // sessions that it opens beside the first one
	opened atomic.Int64
	dieAt  int64 // bytes of all sessions after which it is gone, 0 = never
	got    atomic.Int64
	mu     sync.Mutex
	all    []*far
}

// far is a session of a distant host.
type far struct {
	of     *distant
	s      *server
	came   chan late
	rest   []byte
	closed sync.Once
}

type late struct {
	data []byte
	due  time.Time
}

const wayBack = 25 * time.Millisecond

func newDistant(t *testing.T, most int, dieAt int64) *distant {
	d := &distant{t: t, most: most, dieAt: dieAt, server: (&server{}).start(t, "")}
	d.session(d.server)
	return d
}

func (d *distant) session(s *server) *far {
	f := &far{of: d, s: s, came: make(chan late, 1<<12)}
	go func() {
		defer close(f.came)
		for {
			buf := make([]byte, 32<<10)
			n, err := s.Read(buf)
			if n > 0 {
				f.came <- late{buf[:n], time.Now().Add(wayBack)}
			}
			if err != nil {
				return
			}
		}
	}()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, f)
	return f
}

func (f *far) Read(p []byte) (int, error) {
	if len(f.rest) == 0 {
		l, ok := <-f.came
		if !ok {
			return 0, io.EOF
		}
		time.Sleep(time.Until(l.due))
		f.rest = l.data
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *far) Write(p []byte) (int, error) {
	if n := f.of.got.Add(int64(len(p))); f.of.dieAt > 0 && n > f.of.dieAt {
		f.of.mu.Lock()
		defer f.of.mu.Unlock()
		for _, one := range f.of.all {
			one.s.cmd.Process.Kill()
		}
		f.of.dead = true
		return 0, io.ErrClosedPipe
	}
	return f.s.Write(p)
}

func (f *far) Close() error {
	f.closed.Do(func() { f.s.Close() })
	return nil
}

func (d *distant) Read(p []byte) (int, error)  { return d.all[0].Read(p) }
func (d *distant) Write(p []byte) (int, error) { return d.all[0].Write(p) }
func (d *distant) Close() error                { return d.all[0].Close() }

func (d *distant) Open(context.Context, string) (io.ReadWriteCloser, error) {
	if d.opened.Add(1) > int64(d.most) {
		return nil, errors.Join(fleet.ErrNoExec, errors.New("administratively prohibited"))
	}
	return d.session((&server{}).start(d.t, "")), nil
}

// random returns bytes that no other part of a file has.
func random(n int, seed uint64) string {
	data := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(data)
	return string(data)
}

// TestLanes: over a long path a large file goes over as many sessions as the host opens, and over
// none beside the first one if it opens none.
func TestLanes(t *testing.T) {
	text := random(24<<20+12345, 1)
	for most, wanted := range map[int]int64{7: 3, 1: 3, 0: 1} {
		dir := t.TempDir()
		write(t, dir+"/new", text, 0o644)
		d := newDistant(t, most, 0)
		if said, err := upload(t, t.Context(), d, Options{Hosts: 1}, dir+"/file", dir+"/new"); err != nil {
			t.Fatalf("%d: %v, %s", most, err, said)
		}
		if got, _ := os.ReadFile(dir + "/file"); string(got) != text {
			t.Errorf("%d: %d bytes arrived, and they differ", most, len(got))
		}
		if n := d.opened.Load(); n < wanted {
			t.Errorf("%d sessions were asked for, want %d", n, wanted)
		}
	}
}

// TestLanesKilled: a host that dies in the middle of a file that goes over lanes gets it whole from
// later copies, whether they compare it or not, and whether they use lanes or not.
func TestLanesKilled(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	dice := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	const size = 56 << 20
	text := random(size, seed)
	for range 6 {
		dir := t.TempDir()
		write(t, dir+"/new", text, 0o644)
		o := Options{Hosts: 1, NoVerify: dice.IntN(2) == 0}
		for kills := 1 + dice.IntN(3); kills > 0; kills-- {
			o.Hosts = dice.IntN(2) // 0: without lanes
			if _, err := upload(t, t.Context(), newDistant(t, 7, 1+dice.Int64N(size)), o, dir+"/file", dir+"/new"); err == nil {
				break // less was left to send
			}
		}
		o.Hosts = dice.IntN(2)
		d := newDistant(t, 7, 0)
		said, err := upload(t, t.Context(), d, o, dir+"/file", dir+"/new")
		if got, _ := os.ReadFile(dir + "/file"); err != nil || string(got) != text {
			t.Errorf("%+v: %v, %d bytes, said %q", o, err, len(got), said)
		}
		if left := parts(t, dir); left != nil {
			t.Errorf("left behind: %q", left)
		}
	}
}

// TestFewOpenFiles: a server that opens fewer files at once than a long path asks for sends and
// gets all of them.
func TestFewOpenFiles(t *testing.T) {
	dir := t.TempDir()
	for i := range 300 {
		write(t, fmt.Sprint(dir, "/src/", i), fmt.Sprint(i), 0o644)
	}
	few := func() *distant {
		d := newDistant(t, 0, 0)
		d.noExec = true
		if err := unix.Prlimit(d.cmd.Process.Pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 80, Max: 80}, nil); err != nil {
			t.Fatal(err)
		}
		return d
	}
	o := Options{Hosts: 1}
	if said, err := upload(t, t.Context(), few(), o, dir+"/there", dir+"/src"); err != nil {
		t.Errorf("copy: %v, said %q", err, said)
	}
	d := few()
	if err := download(t, d, o, 0, dir+"/here", dir+"/there/src/"); err != nil {
		t.Errorf("fetch: %v, said %q", err, d.heard())
	}
	if got, want := contents(t, dir+"/here/h"), contents(t, dir+"/src"); got != want {
		t.Errorf("%d bytes of names arrived, want %d", len(got), len(want))
	}
}
