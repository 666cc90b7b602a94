package dial_test

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// TestManyHosts runs a thousand hosts in one run against a server in this process: none may be
// lost.
func TestManyHosts(t *testing.T) {
	const n = 1000
	s := (&sshtest.Server{Exec: func(x *sshtest.Session) { fmt.Fprintln(x, x.Command); x.Exit(0) }}).Start(t)
	var c sshtest.Told
	start, cpu := time.Now(), cpuTime()
	tg := target(t, s)
	tg.ConnectTimeout = 5 * time.Minute // none is lost however busy the machine is
	res := run(t, fanout.Params{}, tg, hosts(n), fleet.Command{Line: "uptime"}, &c)
	t.Logf("%d hosts: %.0f hosts/s, %v CPU a host with the server", n, float64(n)/time.Since(start).Seconds(), (cpuTime()-cpu)/time.Duration(n))
	for i, r := range res {
		if r.Status() != fleet.OK || c.TextOf(i, fleet.Stdout) != "uptime\n" {
			t.Fatalf("%v: %+v, output %q", r.Host, r, c.TextOf(i, fleet.Stdout))
		}
	}
}

// TestMemoryPerConnection holds many connections with a waiting command. The server's half is in
// another process: this test binary again.
func TestMemoryPerConnection(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector's memory is counted too; not measured")
		return
	}
	const n = 400
	s := startHelper(t)
	before := memory()
	var peak uint64
	c := sshtest.Told{}
	waiting := 0
	c.OnOutput = func(fleet.Event) error {
		if waiting++; waiting == n {
			peak = memory()
			os.WriteFile(s.release, nil, 0o600)
		}
		return nil
	}
	res := run(t, fanout.Params{}, s.target, hosts(n), fleet.Command{Line: "wait"}, &c)
	for _, r := range res {
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
	per := (peak - before) / n
	t.Logf("%d bytes of memory per open connection", per)
	if per > 80<<10 {
		t.Errorf("an open connection takes %d bytes, want at most 80 KiB", per)
	}
}

// memory is what the Go runtime has taken from the system and not returned, after a collection.
func memory() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse + m.MSpanInuse + m.MCacheInuse + m.GCSys
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
