package sftp

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// way leads to the installed sftp-server: every piece takes delay, and what has come passes at most
// at rate bytes a second, 0 = at once.
type way struct {
	in    io.WriteCloser
	out   io.ReadCloser
	delay time.Duration
	rate  float64
	queue chan piece

	mu        sync.Mutex
	waiting   int // bytes on their way or before the server
	mostWaits int
}

type piece struct {
	due  time.Time
	data []byte
}

func server(t *testing.T, delay time.Duration, rate float64) *way {
	t.Helper()
	const program = "/usr/lib/openssh/sftp-server"
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: install openssh-sftp-server", err)
	}
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := &way{in: in, out: out, delay: delay, rate: rate, queue: make(chan piece, 1<<16)}
	go w.carry()
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	return w
}

func (w *way) carry() {
	for p := range w.queue {
		time.Sleep(time.Until(p.due))
		if w.rate > 0 {
			time.Sleep(time.Duration(float64(len(p.data)) / w.rate * float64(time.Second)))
		}
		w.in.Write(p.data)
		w.count(-len(p.data))
	}
	w.in.Close()
}

func (w *way) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting += n
	w.mostWaits = max(w.mostWaits, w.waiting)
}

func (w *way) Write(data []byte) (int, error) {
	w.count(len(data))
	w.queue <- piece{time.Now().Add(w.delay), append([]byte(nil), data...)}
	return len(data), nil
}

func (w *way) Read(p []byte) (int, error) { return w.out.Read(p) }
func (w *way) Close() error               { close(w.queue); return nil }

// send writes a file, always as much ahead as may be, and returns how much that was at most.
func (w *way) send(t *testing.T, size int) int {
	t.Helper()
	c, err := NewClient(w, LeastInFlight)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	f, err := c.Open(filepath.Join(t.TempDir(), "file"), Write|Create, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, c.Chunk())
	var pending []Pending
	for offset := 0; offset < size; offset += len(data) {
		pending = append(pending, f.WriteAt(data, int64(offset)))
	}
	for _, p := range append(pending, f.Close()) {
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mostWaits
}

// TestWindowGrows: far away, all that a channel of sshd takes is under way.
func TestWindowGrows(t *testing.T) {
	if most := server(t, 50*time.Millisecond, 0).send(t, 40<<20); most < 2<<20 {
		t.Errorf("%d bytes were under way at most; want 2 MiB", most)
	}
}

// TestWindowStaysSmall: what a server is behind with is not made more.
func TestWindowStaysSmall(t *testing.T) {
	if most := server(t, 0, 50e6).send(t, 10<<20); most > 3<<19 {
		t.Errorf("%d bytes were under way at most; a server that does not keep up should not have more than 1.5 MiB", most)
	}
}
