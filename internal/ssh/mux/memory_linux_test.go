//go:build !race

// The race detector's memory would be counted, too.

package mux_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// TestServerMemory: data that goes through a Server is no garbage afterwards.
func TestServerMemory(t *testing.T) {
	s, _ := serveSshd(t)
	const size = 16 << 20
	move := func(flags string) (garbage uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		ssh := "ssh -F none -S " + s.path + flags
		script := fmt.Sprintf("head -c %d /dev/zero | %s x 'cat >/dev/null' && %s x 'head -c %d /dev/zero' | cat >/dev/null", size, ssh, ssh, size)
		if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil || len(out) > 0 {
			t.Fatalf("%s: %s, %v", flags, out, err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, flags := range []string{"", " -O proxy"} {
		if !waittest.Comes(func() bool { return move(flags) < size/2 }) { // a collection takes buffers away
			t.Errorf("%q: more than %d bytes of garbage for %d that are moved", flags, size/2, 2*size)
		}
	}
}

// TestKeptCommand: a command of ours over a connection that is kept takes two round trips, as it
// does over a master of ssh's: the answer to the first shows that the server lives, before the
// command leaves. It takes few allocations on both ends of the socket.
func TestKeptCommand(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t)
	const short, long, want = 40 * time.Millisecond, 240 * time.Millisecond, 2
	best := map[time.Duration]time.Duration{}
	masters := map[time.Duration]*served{}
	for _, trip := range []time.Duration{short, long} {
		r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", sshd.Port), relay.Options{Path: relay.Path{Delay: trip / 2}, Prompt: true})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		masters[trip], best[trip] = serve(t, r.Port(), sshd.User, sshd.Key, 0), time.Hour
	}
	command := func(trip time.Duration) {
		began := time.Now()
		if r := run(t, &shared{path: masters[trip].path}, fanout.Params{}, fleet.Command{Line: "true"}, &sshtest.Told{}); r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
		best[trip] = min(best[trip], time.Since(began))
	}
	trips := 0.0
	if !waittest.Comes(func() bool { // a busy machine adds its own time
		command(short)
		command(long)
		trips = float64(best[long]-best[short]) / float64(long-short)
		return math.Abs(trips-want) < 0.3
	}) {
		t.Errorf("%.2f round trips", trips)
	}
	const most = 600
	if n := testing.AllocsPerRun(10, func() { command(short) }); n > most {
		t.Errorf("%.0f allocations, at most %d are wanted", n, most)
	} else {
		t.Logf("%.2f round trips, %.0f allocations", trips, n)
	}
}

// TestIdleMemory: a connection that nobody uses takes little memory, also after it was used.
func TestIdleMemory(t *testing.T) {
	sshd := sshtest.StartSshdForOther(t, "MaxStartups 100")
	dir, err := os.MkdirTemp("", "mux") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	e := dial.New(nil, dial.Options{})
	defer e.Close()
	target := &dial.Target{HostName: "127.0.0.1", Port: sshd.Port, User: sshd.User, HostKeys: anyKey{}, Identity: dial.Identity{Files: []string{sshd.Key}}}
	ctx, end := context.WithCancel(context.Background())
	keep := func(name string) (over chan struct{}) {
		c, err := e.Open(t.Context(), target, nil)
		if err != nil {
			t.Fatal(err)
		}
		l, err := mux.Listen(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		over = make(chan struct{})
		go func() { (&mux.Server{Conn: c}).Serve(ctx, l); close(over) }()
		return over
	}
	measure := func() (bytes, goroutines int) {
		var m runtime.MemStats
		for range 3 { // pools keep what they have for a while
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
	}
	const n = 40
	all := []chan struct{}{keep("first")}
	before, routines := measure()
	for i := range n {
		all = append(all, keep(fmt.Sprint(i)))
		if out, err := exec.Command("ssh", "-F", "none", "-S", filepath.Join(dir, fmt.Sprint(i)), "x", "head -c 300000 /dev/zero").Output(); len(out) != 300000 || err != nil {
			t.Fatalf("%d bytes, %v", len(out), err)
		}
	}
	const most, mostRoutines = 24 << 10, 3
	var each, eachRoutines int
	if !waittest.Comes(func() bool {
		after, now := measure()
		each, eachRoutines = (after-before)/n, (now-routines)/n
		return each <= most && eachRoutines <= mostRoutines
	}) {
		t.Errorf("%d bytes and %d goroutines a connection, at most %d and %d are wanted", each, eachRoutines, most, mostRoutines)
	}
	t.Logf("%d bytes and %d goroutines a connection", each, eachRoutines)
	end()
	for _, over := range all {
		<-over
	}
}
