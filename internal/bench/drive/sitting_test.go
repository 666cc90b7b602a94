package drive

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/lab"
	"sshpace/internal/record"
)

// sittings are a few cells, one of them twice.
func sittings(d record.Direction) []record.Trial {
	gcm := alg.Suite{Cipher: "aes128-gcm@openssh.com", Kex: aes.Kex}
	return []record.Trial{
		{ID: 1, Want: aes, Workload: record.Sitting, Direction: d},
		{ID: 2, Want: gcm, Workload: record.Sitting, Direction: d},
		{ID: 3, Want: gcm, Workload: record.Sitting, Direction: d},
	}
}

// sit opens connections, all of which must work.
func sit(t *testing.T, p *Private, trials []record.Trial) {
	t.Helper()
	opened := 0
	err := p.Open(t.Context(), trials, func(trial record.Trial, s record.Sample) error {
		got := s.Got
		if got.HostKey = ""; s.Outcome != record.OK || got != trial.Want {
			t.Errorf("%+v: %+v", trial, s)
		}
		opened++
		return nil
	})
	if err != nil || opened != len(trials) {
		t.Fatalf("%d of %d opened: %v", opened, len(trials), err)
	}
}

func TestSlicesAreExact(t *testing.T) {
	for i, d := range []record.Direction{record.Upload, record.Download} {
		p := newPrivate(t)
		p.Data = []string{"random", "zero"}[i]
		trials := sittings(d)
		sit(t, p, trials)
		size := map[int]int64{}
		for range 5 {
			for _, trial := range trials {
				s, lost, err := p.Slice(t.Context(), trial, time.Millisecond)
				if err != nil || lost != "" {
					t.Fatal(lost, err)
				}
				if s.Trial != trial.ID || s.Bytes <= 0 || s.WallNS <= 0 || *s.ClientCPUNS <= 0 || *s.ServerCPUNS <= 0 || s.HarnessCPUNS <= 0 {
					t.Errorf("%s: %+v", d, s)
				}
				if n := size[trial.ID]; n != 0 && n != int64(s.Bytes) {
					t.Errorf("%s: slices of %d and %d bytes", d, n, s.Bytes)
				}
				size[trial.ID] = int64(s.Bytes)
			}
		}
		if size[2] != size[3] {
			t.Errorf("%s: two connections of a cell have slices of %d and %d bytes", d, size[2], size[3])
		}
		if rekeys := p.Close(1, 2, 3); len(rekeys) != 0 {
			t.Errorf("rekeys: %v", rekeys)
		}
	}
}

// In the middle of a long slice each side has its own work to do: neither takes more CPU time than
// passes, and what arrived is part of the slice.
func TestSteadyPartOfALongSlice(t *testing.T) {
	for _, d := range []record.Direction{record.Upload, record.Download} {
		p := newPrivate(t)
		trials := sittings(d)
		sit(t, p, trials)
		parts := 0
		for range 5 {
			s, lost, err := p.Slice(t.Context(), trials[0], 100*time.Millisecond)
			if err != nil || lost != "" {
				t.Fatal(lost, err)
			}
			part := s.Steady
			if part == nil {
				continue // the costs of the first slices were those of a slower moment
			}
			parts++
			if part.Bytes <= 0 || part.Bytes >= s.Bytes || part.WallNS < leastSteady || part.WallNS >= s.WallNS ||
				*part.ClientCPUNS <= 0 || *part.ServerCPUNS <= 0 || 10*max(*part.ClientCPUNS, *part.ServerCPUNS) > 11*part.WallNS {
				t.Errorf("%s: %+v of %+v", d, part, s)
			}
		}
		if parts == 0 {
			t.Errorf("%s: no slice has a steady part", d)
		}
		if s, _, err := p.Slice(t.Context(), trials[0], time.Millisecond); err != nil || s.Steady != nil {
			t.Errorf("%s: a short slice: %+v, %v", d, s, err)
		}
		p.Close(1, 2, 3)
	}
}

// A slice in which the user stopped us is none, and the connection goes on.
func TestStoppedAndContinued(t *testing.T) {
	dir := t.TempDir() // here the client waits with a slice under way until we go on
	p := faked(t, fmt.Sprintf(`(cd %s; head -c 200000; touch waits; until [ -e goes ]; do sleep 0.01; done; cat) | eval "$1"`, dir))
	mustOpen(t, p)
	take := func() (record.Slice, error) {
		s, lost, err := p.Slice(t.Context(), sittings(record.Upload)[0], time.Millisecond)
		if lost != "" {
			t.Fatal(lost)
		}
		return s, err
	}
	stop := exec.Command("sh", "-c", fmt.Sprintf("cd %s; until [ -e waits ]; do sleep 0.01; done; kill -STOP %d; sleep 1.2; kill -CONT %[2]d; touch goes", dir, os.Getpid()))
	if err := stop.Start(); err != nil {
		t.Fatal(err)
	}
	var paused *lab.Pause
	if _, err := take(); !errors.As(err, &paused) || paused.For < time.Second {
		t.Errorf("a slice that stood still for 1.2 s: %v", err)
	}
	if err := stop.Wait(); err != nil {
		t.Error(err)
	}
	if s, err := take(); err != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSliceOfALostConnection(t *testing.T) {
	p := newPrivate(t)
	trials := sittings(record.Upload)
	sit(t, p, trials)
	p.lines[2].(*connection).Cut()
	if _, lost, err := p.Slice(t.Context(), trials[1], time.Millisecond); lost == "" || err != nil {
		t.Fatalf("lost %q, %v", lost, err)
	}
	if _, lost, err := p.Slice(t.Context(), trials[0], time.Millisecond); lost != "" || err != nil {
		t.Fatalf("another connection: lost %q, %v", lost, err)
	}
	p.Close(1, 3)
}

func TestRemoteSlices(t *testing.T) {
	r := newRemote(t)
	r.Data = "random"
	up, down := sittings(record.Upload)[0], sittings(record.Download)[0]
	down.ID, down.Shares = 2, up.ID
	err := r.Open(t.Context(), []record.Trial{up, down}, func(trial record.Trial, s record.Sample) error {
		got := s.Got
		if got.HostKey = ""; s.Outcome != record.OK || got != aes {
			t.Errorf("%+v: %+v", trial, s)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, trial := range []record.Trial{up, down} {
			s, lost, err := r.Slice(t.Context(), trial, 2*time.Millisecond)
			if err != nil || lost != "" {
				t.Fatal(lost, err)
			}
			if s.Trial != trial.ID || s.Bytes <= 0 || *s.ClientCPUNS <= 0 || s.ServerCPUNS == nil || *s.ServerCPUNS <= 0 {
				t.Errorf("%+v", s)
			}
		}
	}
	r.Close(1, 2)
}

func TestRemoteWithoutHead(t *testing.T) {
	bin := t.TempDir()
	for _, name := range []string{"sh", "cat"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := newRemote(t, "SetEnv PATH="+bin)
	var sample record.Sample
	if err := r.Open(t.Context(), sittings(record.Upload)[:1], func(_ record.Trial, s record.Sample) error {
		sample = s
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if sample.Outcome != record.Broken || !strings.Contains(sample.Detail, "head") {
		t.Errorf("%+v", sample)
	}
}

// TestHoldersEnd shows that nothing sleeps on at the remote end: when a connection is closed, when
// it is lost, when its client is killed.
func TestHoldersEnd(t *testing.T) {
	ends := map[string]func(p *Private, c *connection){
		"closed": func(p *Private, _ *connection) { p.Close(1) },
		"lost": func(p *Private, c *connection) {
			c.Kill()
			p.Slice(t.Context(), sittings(record.Upload)[0], time.Millisecond)
		},
		"client killed": func(_ *Private, c *connection) { c.Kill() },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			p := newPrivate(t)
			sit(t, p, sittings(record.Upload)[:1])
			c := p.lines[1].(*connection)
			text, err := os.ReadFile(c.holder)
			if err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Sscan(string(text), &pid); err != nil || waittest.Ended(pid) {
				t.Fatalf("no holder %d: %v", pid, err)
			}
			end(p, c)
			waittest.Gone(t, pid)
		})
	}
}

// Sizes are whole packets that follow the cost: a cell that is found a tenth costlier has slices of
// a tenth less.
func TestSizeFor(t *testing.T) {
	for _, c := range []struct {
		length  time.Duration
		perByte float64
		want    int64
	}{
		{time.Millisecond, 2, 15 * packet}, // 500,000 bytes are 15.3 packets
		{time.Millisecond, 2.2, 14 * packet},
		{time.Millisecond, 36, leastShort},
		{time.Millisecond / 2, 2, 8 * packet}, // 250,000 bytes are 7.6
		{time.Millisecond / 2, 36, leastBrief},
		{time.Millisecond / 2, 0.3, mostBrief},
		{time.Millisecond, 0.3, widePipe},
		{8 * time.Millisecond, 2, 122 * packet},
		{8 * time.Millisecond, 36, leastLong},
		{80 * time.Millisecond, 2, 77 * leastLong}, // 76.3
		{80 * time.Millisecond, 1e-3, mostLong},
	} {
		if got := sizeFor(c.length, c.perByte); got != c.want {
			t.Errorf("%v at %v ns/B: %d bytes, want %d", c.length, c.perByte, got, c.want)
		}
	}
}
