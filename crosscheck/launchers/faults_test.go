//go:build linux

package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/relay"
)

// A few trials are part of all tests.
var (
	given  = flag.String("program", "", "sshpace-hub (default: it is built)")
	atOnce = flag.Int("at-once", 8, "trials at once")
	trials = flag.Int("trials", 6, "jobs with faults")
	seed   = flag.Uint64("seed", 1, "of the first one; the others have the next ones")
)

// What is done to a job has no host run twice, no result lost, and no wrong verdict.
func TestFaults(t *testing.T) {
	dir := t.TempDir()
	program, err := build(*given, dir)
	if err != nil {
		t.Fatal(err)
	}
	seeds := make(chan uint64)
	var all sync.WaitGroup
	var done tally
	for range *atOnce {
		all.Go(func() {
			for s := range seeds {
				if faults := try(program, dir, s, &done); len(faults) > 0 {
					t.Errorf("-trials 1 -seed %d:\n  %s", s, strings.Join(faults, "\n  "))
				}
			}
		})
	}
	for i := range *trials {
		seeds <- *seed + uint64(i)
	}
	close(seeds)
	all.Wait()
	t.Logf("%d trials: %d deeds before all hosts had begun; %d hosts, %d of them unknown, %d not started", *trials, done.deeds.Load(), done.hosts.Load(), done.unknown.Load(), done.waiting.Load())
}

// tally is what trials have seen.
type tally struct{ deeds, hosts, unknown, waiting atomic.Int64 }

const (
	lease     = 3 * time.Second // short, so that a launcher that is lost is soon known to be
	smallDisk = 64 << 20        // of the hub
)

// trial is a job that suffers.
type trial struct {
	*job
	mu      sync.Mutex
	lost    losses
	stopped bool
	log     []string
}

// A deed is done to a job at a random moment; it takes as long as it likes.
type deed func(j *trial, rng *rand.Rand) error

var deeds = []deed{
	func(j *trial, rng *rand.Rand) error { return j.killed(j.client, pause(rng)) },
	func(j *trial, rng *rand.Rand) error { return j.killed(j.hub, pause(rng)) },
	func(j *trial, rng *rand.Rand) error { return j.killed(j.either(rng), pause(rng)) },
	func(j *trial, _ *rand.Rand) error { return j.killed(j.launchers[1], forGood) },
	func(j *trial, rng *rand.Rand) error { return j.held(j.client, pause(rng)) },
	func(j *trial, rng *rand.Rand) error { return j.held(j.hub, pause(rng)) },
	func(j *trial, rng *rand.Rand) error { return j.held(j.either(rng), long+pause(rng)) },
	func(j *trial, rng *rand.Rand) error { return j.cut(j.client, pause(rng), rng.IntN(2) == 0) },
	func(j *trial, rng *rand.Rand) error { return j.cut(j.either(rng), pause(rng)/6, rng.IntN(2) == 0) },
	func(j *trial, rng *rand.Rand) error { return j.cut(j.either(rng), long+pause(rng), rng.IntN(2) == 0) },
	func(j *trial, rng *rand.Rand) error { return j.filled(pause(rng)) },
	func(j *trial, _ *rand.Rand) error { return j.stop() },
}

const (
	long    = lease * 3 / 2
	forGood = most
)

// pause is up to twice a lease.
func pause(rng *rand.Rand) time.Duration { return time.Duration(rng.Int64N(int64(2 * lease))) }

func (j *trial) either(rng *rand.Rand) *member { return j.launchers[rng.IntN(2)] }

// try runs the job of a seed, does things to it, and returns all that was wrong.
func try(program, parent string, seed uint64, done *tally) (faults []string) {
	rng := rand.New(rand.NewPCG(seed, 0))
	f, err := serve(seed, draw)
	if err != nil {
		return []string{err.Error()}
	}
	made, err := newJob(program, parent, 60+rng.IntN(141), f)
	if err != nil {
		return []string{err.Error()}
	}
	j := &trial{job: made, lost: losses{}}
	defer j.close()
	if os.Getuid() == 0 {
		if err := errors.Join(os.Mkdir(j.path("hub"), 0o700), unix.Mount("none", j.path("hub"), "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", smallDisk))); err != nil {
			return []string{err.Error()}
		}
	}
	j.listen, j.work, j.way = []string{"--listen", fmt.Sprintf("127.0.0.1:%d", freePort())}, []string{"--lease", lease.String()}, j.relayed
	if err = j.start(2, "-f", fmt.Sprint(4+rng.IntN(14)), "--batch", []string{"100%", "20%", "5,50%"}[rng.IntN(3)]); err == nil {
		err = j.suffers(rng, done)
	}
	if err == nil {
		err = j.ends()
	}
	if err == nil {
		faults = j.judged()
	}
	// A client that knows nothing of it reports the same.
	if err == nil {
		j.client.args = j.stranger()
		err = errors.Join(j.begin(j.client), j.ends())
	}
	if err == nil {
		faults = append(faults, j.judged()...)
		for _, h := range j.client.told.hosts {
			done.hosts.Add(1)
			if len(h.results) == 0 {
				continue
			}
			if h.results[0].Ran == "unknown" {
				done.unknown.Add(1)
			}
			if h.results[0].Status == "not_started" {
				done.waiting.Add(1)
			}
		}
	} else {
		faults = append(faults, err.Error())
	}
	for _, l := range j.launchers {
		select {
		case <-l.ended:
			if l.ProcessState.Exited() {
				faults = append(faults, l.name+" has ended by itself")
			}
		default:
		}
	}
	words := ""
	for _, m := range j.members() {
		words += fmt.Sprintf("%.3000s\n", j.words(m))
	}
	if strings.Contains(words, "goroutine ") {
		faults = append(faults, "a panic")
	}
	if n := len(faults); n > 0 {
		faults = append(append(faults[:min(n, 8)], fmt.Sprintf("%d faults", n)), append(j.log, words)...)
	}
	return faults
}

func (j *trial) judged() []string {
	return judge(j.hosts, j.fleet.seen(), j.client.told, j.lost, j.stopped)
}

// suffers does one to three things to a job.
func (j *trial) suffers(rng *rand.Rand, done *tally) error {
	var all sync.WaitGroup
	failed := make([]error, 1+rng.IntN(3))
	for i := range failed {
		do, at, own := deeds[rng.IntN(len(deeds))], pause(rng)/2, rand.New(rand.NewPCG(rng.Uint64(), 0))
		all.Go(func() {
			time.Sleep(at)
			if len(j.fleet.seen()) < len(j.hosts) {
				done.deeds.Add(1)
			}
			failed[i] = do(j, own)
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// say notes what is done, for people.
func (j *trial) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.log = append(j.log, fmt.Sprintf("%s: ", time.Now().Format("05.000"))+fmt.Sprintf(format, args...))
}

// lose notes that a launcher was lost until now. It may learn late that an entry of it was kept.
func (j *trial) lose(m *member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if m != j.hub && m != j.client {
		j.lost[m.name] = time.Now().Add(2 * lease)
	}
}

// killed kills a member, which is started again after a while. A client comes back to its job.
func (j *trial) killed(m *member, after time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m == j.client {
		j.named()
	}
	j.say("%s is killed", m.name)
	m.kill()
	j.lose(m)
	if after == forGood {
		return nil
	}
	time.Sleep(after)
	if m == j.client {
		m.args = []string{"jobs", "--json", j.named()}
	}
	// What does not find the hub, or no room there, is started again, as systemd does it.
	for early := true; early; {
		j.say("%s starts again", m.name)
		if err := j.begin(m); err != nil {
			return err
		}
		select {
		case <-m.ended:
			time.Sleep(lease / 4)
		case <-time.After(lease):
			early = false
		}
	}
	return nil
}

// held stops a member for a while, as a machine does that sleeps.
func (j *trial) held(m *member, d time.Duration) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.say("%s is held for %v", m.name, d)
	_ = m.Process.Signal(unix.SIGSTOP)
	time.Sleep(d)
	_ = m.Process.Signal(unix.SIGCONT)
	j.say("%s goes on", m.name)
	j.lose(m)
	return nil
}

// cut takes the way to the hub away from a member for a while: it is refused, or nothing arrives.
func (j *trial) cut(m *member, d time.Duration, silent bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.say("%s is cut off for %v, in silence: %v", m.name, d, silent)
	if silent {
		m.relay.Freeze()
		time.Sleep(d)
	}
	m.relay.Close()
	if !silent {
		time.Sleep(d)
	}
	j.say("%s may reach the hub", m.name)
	if d >= long {
		j.lose(m)
	}
	return j.open(m)
}

// filled leaves no room on the hub's disk for a while, where it is a small one.
func (j *trial) filled(d time.Duration) error {
	var s unix.Statfs_t
	if err := unix.Statfs(j.path("hub"), &s); err != nil || s.Blocks*uint64(s.Bsize) > smallDisk {
		return err
	}
	f, err := os.CreateTemp(j.path("hub"), "ballast")
	if err != nil {
		return err
	}
	defer f.Close()
	j.say("the disk of the hub is full for %v", d)
	end := int64(0)
	for size := int64(smallDisk); size > 0; size /= 2 {
		for unix.Fallocate(int(f.Fd()), 0, end, size) == nil {
			end += size
		}
	}
	time.Sleep(d)
	j.say("the disk of the hub has room")
	return os.Remove(f.Name())
}

// stop stops the job.
func (j *trial) stop() error {
	id := j.named()
	j.say("the job is stopped")
	j.stopped = true
	for end := time.Now().Add(most); ; time.Sleep(lease / 10) {
		cmd := exec.Command(j.program, "jobs", "--stop", id)
		cmd.Env = j.environment(j.client)
		out, err := cmd.CombinedOutput()
		switch {
		case err == nil, strings.Contains(string(out), " was killed"): // the client that it waited for
			return nil
		case time.Now().After(end): // a hub that was away, or full, is not any more
			return fmt.Errorf("jobs --stop: %w: %s", err, out)
		}
	}
}

// named waits until the job has a name, and returns it.
func (j *trial) named() string {
	for j.called("") == "" {
		time.Sleep(10 * time.Millisecond)
	}
	return j.called("")
}

// atHub is the name that a launcher calls the job by.
var atHub = regexp.MustCompile(`\bjob (\S+-[a-z2-7]{6})\b`)

// stranger returns the arguments of a client that knows the job from others.
func (j *trial) stranger() []string {
	for _, l := range j.launchers {
		if found := atHub.FindStringSubmatch(j.words(l)); found != nil {
			return append([]string{"jobs", "--json", found[1]}, j.client.reach...)
		}
	}
	return []string{"jobs", "--json", j.named()}
}

// draw is the answer of a host in a trial: most are quick, some fail, some have much to say.
func draw(rng *rand.Rand) (a answer) {
	a.after = time.Duration(rng.ExpFloat64() * 0.5 * float64(time.Second))
	if rng.IntN(4) == 0 {
		a.exit = 1 + rng.IntN(100)
	}
	lines := rng.IntN(4)
	if rng.IntN(10) == 0 {
		lines = 3000
	}
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "line %d %x\n", i, rng.Uint64())
	}
	a.output = b.String()
	return a
}

// ports are below those that the kernel gives to connections, so that a server that is started
// again finds its own free.
var ports atomic.Int32

func freePort() int {
	for {
		port := 20000 + int(ports.Add(1)+int32(os.Getpid()*16))%12000
		if l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			l.Close()
			return port
		}
	}
}

// relayed makes the way of a member to the hub, with a credential.
func (j *trial) relayed(m *member) ([]string, error) {
	role := "work:" + pool
	if m == j.client {
		role = "client"
	}
	creds, err := exec.Command(j.program, "hub", "--dir", j.path("hub"), "--credential", role).Output()
	if err != nil {
		return nil, fmt.Errorf("hub --credential: %w", err)
	}
	m.port = freePort()
	return []string{"--hub", fmt.Sprintf("nats://127.0.0.1:%d", m.port), "--creds", j.path(m.name, "creds")},
		errors.Join(j.open(m), os.WriteFile(j.path(m.name, "creds"), creds, 0o600))
}

// open opens the way of a member, at a port that somebody else may have for a moment.
func (j *trial) open(m *member) error {
	l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", m.port))
	for end := time.Now().Add(most); err != nil && time.Now().Before(end); time.Sleep(lease / 10) {
		l, err = net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", m.port))
	}
	if err == nil {
		m.relay, err = relay.To(j.listen[1], relay.Options{Listener: l})
	}
	return err
}
