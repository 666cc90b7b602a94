//go:build linux

package reach

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

var (
	cuts     = flag.Int("cuts", 0, "how many connections TestCuts cuts; 0 = as many as some seconds allow")
	cutsSeed = flag.Uint64("cuts.seed", 0, "of TestCuts; 0 = by the clock")
)

// place is where on the way to the host a connection is cut.
type place uint8

const (
	direct place = iota
	beforeJump
	behindJump
	master // behind the back of a ControlMaster
)

// ways are how a host is reached, and how often of 100 times.
var ways = []struct {
	name    string
	engine  Engine
	place   place
	setting string
	share   int
}{
	{"native", Native, direct, "", 40},
	{"native, to the jump host", Native, beforeJump, "", 15},
	{"native, behind the jump host", Native, behindJump, "", 15},
	{"native, by counter mode", Native, direct, "Ciphers aes128-ctr", 10},
	{"native, over a master", Native, master, "", 5},
	{"openssh", OpenSSH, direct, "", 5},
	{"openssh, to the jump host", OpenSSH, beforeJump, "", 4},
	{"openssh, behind the jump host", OpenSSH, behindJump, "", 4},
	{"openssh, over a master", OpenSSH, master, "", 2},
}

func randomWay(rng *rand.Rand) int {
	dice := rng.IntN(100)
	for i, w := range ways {
		if dice -= w.share; dice < 0 {
			return i
		}
	}
	panic("the shares are not 100")
}

// cutter runs commands on a server of its own, whose connections it cuts.
type cutter struct {
	*sshtest.Sshd
	dir   string
	tries int
}

func newCutter(t *testing.T) *cutter {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshdUnder(t, []string{exe, "-test.run=^TestReaper$", "--"})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "known"), []byte("* "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	return &cutter{Sshd: s, dir: dir}
}

// TestReaper becomes the program on its command line, to which the orphans of its children fall. On
// its own it has nothing to do.
func TestReaper(t *testing.T) {
	if flag.NArg() == 0 {
		return
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Fatal(syscall.Exec(flag.Arg(0), flag.Args(), os.Environ()))
}

// configure writes an ssh_config for a host that is reached through the relay.
func (c *cutter) configure(t *testing.T, way int, port int) (file, socket string) {
	t.Helper()
	socket = filepath.Join(c.dir, "master")
	hostPort, jumpPort, lines := port, c.Port, ""
	switch ways[way].place {
	case beforeJump:
		hostPort, jumpPort = c.Port, port
		fallthrough
	case behindJump:
		lines = "Host web\nProxyJump gate\n"
	case master:
		lines = "Host web\nControlPath " + socket + "\n"
	}
	text := fmt.Sprintf("%sHost web\nHostName 127.0.0.1\nPort %d\nHost gate\nHostName 127.0.0.1\nPort %d\nHost *\n%s\nUser %s\nIdentityFile %s\n"+
		"IdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n",
		lines, hostPort, jumpPort, ways[way].setting, c.User, c.Key, filepath.Join(c.dir, "known"))
	file = filepath.Join(c.dir, "config")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file, socket
}

// patience is how long a login, and how long a command, may take. ssh's logins take four times as
// long.
const patience = 2 * time.Second

// trial is what became of one command.
type trial struct {
	fleet.Result
	lines int // that it has written on the host
	said  int // bytes that came from the server
}

// try runs a command that writes a line on the host, and waits until nothing of it is left there. f
// befalls the connection, or with a master what is asked of that.
func (c *cutter) try(t *testing.T, way int, f *relay.Fault) trial {
	t.Helper()
	var said atomic.Int64
	r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", c.Port), relay.Options{Watch: func(s relay.Seen) {
		if s.Dir == relay.Down && s.Conn == 1 {
			said.Add(int64(len(s.Data)))
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	config, socket := c.configure(t, way, r.Port())
	if ways[way].place == master {
		defer startMaster(t, config, socket)()
		said.Store(0)
	}
	if f != nil {
		r.Fail(*f)
	}
	c.tries++
	log := filepath.Join(c.dir, fmt.Sprintf("log%d", c.tries))
	limit := patience
	if f == nil { // nothing is in its way but a busy machine
		limit = time.Minute
	}
	result := runOne(t, config, ways[way].engine, limit, "echo ran >>"+log)
	c.rest(t)
	text, _ := os.ReadFile(log)
	os.Remove(log)
	return trial{result, bytes.Count(text, []byte("ran\n")), int(said.Load())}
}

func runOne(t *testing.T, config string, engine Engine, limit time.Duration, line string) fleet.Result {
	t.Helper()
	p := Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: config}, ConnectTimeout: limit}, Engine: engine}
	if engine == OpenSSH {
		p.ConnectTimeout *= 4
	}
	executor, err := New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{CommandTimeout: limit}, []host.Host{{Name: "web"}}, fleet.Command{Line: line}, executor, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()[0]
}

// startMaster is a ControlMaster, until stop.
func startMaster(t *testing.T, config, socket string) (stop func()) {
	t.Helper()
	var said bytes.Buffer
	cmd := exec.Command("ssh", "-F", config, "-N", "-M", "web")
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !waittest.Comes(sshtest.Listens("unix", socket)) {
		t.Fatalf("no master: %s", said.String())
	}
	return func() { cmd.Process.Kill(); cmd.Wait(); os.Remove(socket) }
}

// rest waits until the server has nothing more to do; a master's connection stays.
func (c *cutter) rest(t *testing.T) {
	t.Helper()
	_, err := os.Stat(filepath.Join(c.dir, "master"))
	kept := 0
	if err == nil {
		kept = 1
	}
	const looks = 4 // one may miss a process, when another one ends just then (proc(5), children)
	for began, still := time.Now(), 0; still < looks; time.Sleep(2 * time.Millisecond) {
		if still++; c.Processes(t) > kept {
			still = 0
		}
		if time.Since(began) > time.Minute {
			t.Fatalf("the server goes on: %s", c.Log())
		}
	}
}

// consistent reports whether what is said of a command agrees with what it did.
func (r *trial) consistent() bool {
	switch r.Ran {
	case fleet.RanYes:
		return r.lines == 1
	case fleet.RanNo:
		return r.lines == 0
	default:
		return r.lines <= 1
	}
}

// randomFault cuts at any byte, half of the time at one of the last: from the login on.
func randomFault(rng *rand.Rand, size int) relay.Fault {
	const late = 1000
	ends := []relay.End{relay.Finish, relay.Finish, relay.Finish, relay.Reset, relay.Reset, relay.Silence}
	f := relay.Fault{After: rng.IntN(size), How: ends[rng.IntN(len(ends))]}
	if rng.IntN(2) == 0 {
		f.After = max(0, size-1-rng.IntN(late))
	}
	if rng.IntN(2) == 0 {
		f.Later = time.Duration(rng.IntN(60)) * time.Millisecond
	}
	return f
}

// TestCuts: a connection that somebody without any key ends after any byte of the server's, in any
// way, never makes a command run twice, and what is said of it is true.
func TestCuts(t *testing.T) {
	const workers, most = 8, time.Second
	seed := *cutsSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-cuts.seed %d", seed)
	began := time.Now()
	var next atomic.Int64
	var told tally
	sizes := make([]int, len(ways))
	first := newCutter(t)
	for way := range ways {
		r := first.try(t, way, nil)
		if r.Status() != fleet.OK || r.lines != 1 {
			t.Fatalf("%s, uncut: %d lines, %+v", ways[way].name, r.lines, r.Result)
		}
		sizes[way] = max(1, r.said)
	}
	var all sync.WaitGroup
	for range workers {
		c := newCutter(t)
		all.Go(func() {
			for i := next.Add(1); *cuts == 0 && time.Since(began) < most || i <= int64(*cuts); i = next.Add(1) {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				way := randomWay(rng)
				f := randomFault(rng, sizes[way])
				r := c.try(t, way, &f)
				if told.add(way, &r); !r.consistent() {
					t.Errorf("%d: %s, %+v: ran %v, %d lines: %+v", i, ways[way].name, f, r.Ran, r.lines, r.Result)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%v for\n%s", time.Since(began), told.String())
}

// tally counts trials by way, what was said and what happened.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (n *tally) add(way int, r *trial) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.n == nil {
		n.n = make(map[string]int)
	}
	n.n[fmt.Sprintf("%s: ran %v, %d lines", ways[way].name, r.Ran, r.lines)]++
}

func (n *tally) String() string {
	var lines []string
	for what, count := range n.n {
		lines = append(lines, fmt.Sprintf("%s: %d times", what, count))
	}
	return strings.Join(lines, "\n")
}
