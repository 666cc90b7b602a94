package transfer_test

import (
	"encoding/json"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/relay"
)

// slow gives, or takes, 64 KiB a hundred times a second at most.
var (
	slowSource = []string{"sh", "-c", "while head -c 65536 /dev/zero; do sleep 0.01; done"}
	slowSink   = []string{"sh", "-c", "while sleep 0.01 && kill -0 $PPID; do dd bs=65536 count=1 iflag=fullblock of=/dev/null status=none; done"}
)

// crowd puts a process of the connection on one core with three others that are always busy there,
// as long as it lives.
func crowd(t *testing.T, pid int) {
	t.Helper()
	var one unix.CPUSet
	one.Set(runtime.NumCPU() - 1)
	for range 3 {
		busy := exec.Command("sh", "-c", "while kill -0 $0 2>/dev/null; do :; done", strconv.Itoa(pid))
		if err := busy.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
		if err := unix.SchedSetaffinity(busy.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.SchedSetaffinity(pid, &one); err != nil {
		t.Fatal(err)
	}
}

// cpus are the verdicts that are right where nothing but computing takes time. Other tests may keep
// the machine busy meanwhile.
var cpus = []string{record.LimitClientCPU, record.LimitServerCPU, record.LimitBothCPUs, record.LimitBusy}

// What limits a transfer to a host is looked for once the login is over, however long that takes:
// here more than two seconds. What a busy machine moves is little, but not nothing.
func TestLimitAfterALongLogin(t *testing.T) {
	host := *open(t, relay.Path{Delay: 150 * time.Millisecond})
	host.Server, host.Helper = nil, nil // as any host's
	for _, direction := range []record.Direction{record.Upload, record.Download} {
		limit, err := host.Limit(t.Context(), transfer.Options{Suite: suite, Direction: direction}, transfer.Ends{})
		if err != nil || limit.Evidence.BytesPerSecond < 1e5 {
			t.Errorf("%s: %+v, %v", direction, limit, err)
		}
	}
}

// What limits a transfer is named, whatever it is: of twenty planted limits at most one may be
// taken for another, and none that lies on the way for a CPU.
func TestQuietPlantedLimits(t *testing.T) {
	const up, down = record.Upload, record.Download
	gcm, chacha := alg.NewSuite("aes128-gcm@openssh.com", "", ""), alg.NewSuite("chacha20-poly1305@openssh.com", "", "")
	slowLink, slowerLink := relay.Path{Rate: 6e6}, relay.Path{Rate: 3e6}
	farLink := relay.Path{Rate: 3e6, Delay: 10 * time.Millisecond}
	far, farther := relay.Path{Delay: 50 * time.Millisecond}, relay.Path{Delay: 75 * time.Millisecond}
	losing := relay.Path{Delay: 5 * time.Millisecond, Loss: relay.Loss{Share: 0.0005, Seed: 1}}
	cases := []struct {
		name      string
		path      relay.Path
		direction record.Direction
		suite     alg.Suite
		ends      transfer.Ends
		want      []string
	}{
		{"6 MB/s", slowLink, up, gcm, transfer.Ends{}, []string{record.LimitLink}},
		{"6 MB/s", slowLink, down, gcm, transfer.Ends{}, []string{record.LimitLink}},
		{"3 MB/s", slowerLink, up, chacha, transfer.Ends{}, []string{record.LimitLink}},
		{"3 MB/s", slowerLink, down, chacha, transfer.Ends{}, []string{record.LimitLink}},
		{"3 MB/s, 20 ms", farLink, up, gcm, transfer.Ends{}, []string{record.LimitLink}},
		{"3 MB/s, 20 ms", farLink, down, chacha, transfer.Ends{}, []string{record.LimitLink}},
		{"100 ms", far, up, gcm, transfer.Ends{}, []string{record.LimitWindow}},
		{"100 ms", far, down, gcm, transfer.Ends{}, []string{record.LimitWindow}},
		{"150 ms", farther, up, chacha, transfer.Ends{}, []string{record.LimitWindow}},
		{"150 ms", farther, down, gcm, transfer.Ends{}, []string{record.LimitWindow}},
		{"losses", losing, up, gcm, transfer.Ends{}, []string{record.LimitLosses}},
		{"losses, no delay", relay.Path{Loss: relay.Loss{Share: 0.01, Seed: 1}}, down, gcm, transfer.Ends{}, []string{record.LimitLosses}},
		{"slow source", relay.Path{}, up, gcm, transfer.Ends{Source: slowSource}, []string{record.LimitSource}},
		{"slow source", relay.Path{}, down, gcm, transfer.Ends{Source: slowSource}, []string{record.LimitSource}},
		{"slow sink", relay.Path{}, up, gcm, transfer.Ends{Sink: slowSink}, []string{record.LimitSink}},
		{"slow sink", relay.Path{}, down, gcm, transfer.Ends{Sink: slowSink}, []string{record.LimitSink}},
		{"busy core of the client", relay.Path{}, up, gcm, transfer.Ends{Started: func(client, _ int) { crowd(t, client) }}, []string{record.LimitBusy, record.LimitClientCPU}},
		{"busy core of the server", relay.Path{}, up, chacha, transfer.Ends{Started: func(_, server int) { crowd(t, server) }}, []string{record.LimitBusy, record.LimitServerCPU}},
		{"nothing", relay.Path{}, up, gcm, transfer.Ends{}, cpus},
		{"nothing", relay.Path{}, down, chacha, transfer.Ends{}, cpus},
	}
	computes := func(i int) bool {
		return slices.ContainsFunc(cases[i].want, func(w string) bool { return slices.Contains(cpus, w) })
	}
	look := func(t *testing.T, i int) record.Limit {
		t.Helper()
		c := cases[i]
		limit, err := open(t, c.path).Limit(t.Context(), transfer.Options{Suite: c.suite, Direction: c.direction}, c.ends)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(c.want, limit.What) {
			evidence, _ := json.Marshal(limit.Evidence)
			t.Logf("%s: %s, not %v: %s", limit.What, limit.Sentence, c.want, evidence)
		}
		return limit
	}
	found := make([]record.Limit, len(cases))
	t.Run("together", func(t *testing.T) { // what waits most of the time waits beside others
		for i := range cases {
			if !computes(i) {
				t.Run(strconv.Itoa(i+1), func(t *testing.T) { t.Parallel(); found[i] = look(t, i) })
			}
		}
	})
	wrong := 0
	for i, c := range cases {
		t.Run(strconv.Itoa(i+1)+" "+c.name+" "+string(c.direction), func(t *testing.T) {
			if computes(i) {
				found[i] = look(t, i)
			}
			what := found[i].What
			if !slices.Contains(c.want, what) && !computes(i) {
				what = look(t, i).What // by itself: others moved data beside it
			}
			if !slices.Contains(c.want, what) && what != record.LimitBusy {
				wrong++
			}
			if slices.Contains(cpus[:3], what) && !computes(i) {
				t.Errorf("%s for a limit on the way", what)
			}
		})
	}
	if wrong > 1 {
		t.Errorf("%d of %d planted limits are taken for others", wrong, len(cases))
	}
}
