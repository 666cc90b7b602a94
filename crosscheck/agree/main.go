// Command agree checks sshpace's numbers against loops that share no code with
// it: client cost from /proc/PID/schedstat and throughput of an ssh that is fed from
// /dev/zero for some seconds, and read by a dd in large blocks (cat is a third process
// for two cores, which makes the fastest ciphers 8-12 % slower). Each runs in turn with
// sshpace on the same cell, so that both see the same machine.
//
//	go run ./crosscheck/agree [-cells 10] [-match EXPRESSION] [-seed 1] [-sshpace ./sshpace]
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	cells := flag.Int("cells", 10, "random cells to compare")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "which cells")
	match := flag.String("match", "", "only cells whose name matches this expression")
	program := flag.String("sshpace", "./sshpace", "the program to check")
	flag.Parse()
	only, err := regexp.Compile(*match)
	if err != nil {
		log.Fatal(err)
	}
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	err = s.compare(*program, pick(*cells, only, rand.New(rand.NewPCG(*seed, 0))))
	s.close()
	if err != nil {
		log.Fatal(err)
	}
}

// cell is one cipher with a MAC.
type cell struct{ cipher, mac string }

func (c cell) String() string { return strings.TrimSpace(c.cipher + " " + c.mac) }

// pick draws distinct cells from the installed algorithms whose names match.
func pick(n int, only *regexp.Regexp, random *rand.Rand) []cell {
	ciphers, macs := query("cipher"), query("mac")
	var all []cell
	for _, cipher := range ciphers {
		if strings.Contains(cipher, "gcm") || strings.Contains(cipher, "poly1305") {
			all = append(all, cell{cipher, ""})
			continue
		}
		for _, mac := range macs {
			all = append(all, cell{cipher, mac})
		}
	}
	all = slices.DeleteFunc(all, func(c cell) bool { return !only.MatchString(c.String()) })
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

func query(what string) []string {
	out, err := exec.Command("ssh", "-Q", what).Output()
	if err != nil {
		log.Fatal(err)
	}
	return strings.Fields(string(out))
}

// compare prints client cost and throughput of random cells by both ways, and how far
// the loop is from itself: no difference below that means anything.
func (s *server) compare(program string, cells []cell) error {
	fmt.Printf("%-46s %8s %8s %7s %8s %8s %7s  %s\n", "", "ns/B", "sshpace", "differ", "MB/s", "sshpace", "differ", "last loop to first")
	var costs, rates []float64
	for _, c := range cells {
		loops, ours, err := s.alternate(program, c)
		if err != nil {
			return err
		}
		loop, mine := middle(loops), middle(ours)
		cost, rate := 100*math.Log(mine.cost/loop.cost), 100*math.Log(mine.rate/loop.rate)
		costs, rates = append(costs, cost), append(rates, rate)
		first, last := loops[0], loops[len(loops)-1]
		fmt.Printf("%-46s %8.3f %8.3f %+6.1f%% %8.0f %8.0f %+6.1f%%  %+.1f%%, %+.1f%%\n", c, loop.cost, mine.cost, cost, loop.rate/1e6, mine.rate/1e6, rate, 100*math.Log(last.cost/first.cost), 100*math.Log(last.rate/first.rate))
	}
	say("cost", costs)
	say("throughput", rates)
	return nil
}

// alternate measures a cell both ways in turn, the loop first and last.
func (s *server) alternate(program string, c cell) (loops, ours []figures, err error) {
	for turn := range 5 {
		var f figures
		if turn%2 == 0 {
			f, err = s.loop(c)
			loops = append(loops, f)
		} else {
			f, err = measure(program, c)
			ours = append(ours, f)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return loops, ours, nil
}

// middle is the mean of figures, of which the first and the last count half where there
// are more than two, so that what changes evenly is the same for both ways.
func middle(all []figures) figures {
	var sum figures
	total := 0.0
	for i, f := range all {
		weight := 1.0
		if len(all) > 2 && (i == 0 || i == len(all)-1) {
			weight = 0.5
		}
		sum.cost, sum.rate, total = sum.cost+weight*f.cost, sum.rate+weight*f.rate, total+weight
	}
	return figures{sum.cost / total, sum.rate / total}
}

// say sums differences up: how large they are, and what they have in common.
func say(name string, differences []float64) {
	n := float64(len(differences))
	var sizes []float64
	sum, squares := 0.0, 0.0
	for _, d := range differences {
		sizes = append(sizes, math.Abs(d))
		sum, squares = sum+d, squares+d*d
	}
	slices.Sort(sizes)
	mean := sum / n
	arm := 2 * math.Sqrt(math.Max(0, squares/n-mean*mean)/math.Max(1, n-1))
	fmt.Printf("%s: median difference %.1f %%, largest %.1f %%; all together %+.1f %% (%+.1f to %+.1f)\n", name, median(sizes), sizes[len(sizes)-1], mean, mean-arm, mean+arm)
}

// figures are what a way of measuring says of a cell.
type figures struct{ cost, rate float64 } // client CPU time in ns per byte, bytes per second

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// measure asks sshpace for one cell.
func measure(program string, c cell) (figures, error) {
	out := filepath.Join(os.TempDir(), fmt.Sprintf("agree-%d.jsonl", time.Now().UnixNano()))
	defer os.Remove(out)
	args := []string{"bench", "--json", "--budget", "4s", "--cipher", c.cipher, "--kex", "curve25519-sha256", "--out", out}
	if c.mac != "" {
		args = append(args, "--mac", c.mac)
	}
	text, err := exec.Command(program, args...).Output()
	if err != nil {
		return figures{}, fmt.Errorf("%s %v: %w", program, args, err)
	}
	var report struct {
		Bulk []struct {
			Throughput struct{ Value float64 } `json:"throughput_bytes_per_s"`
			Client     struct{ Value float64 } `json:"client_ns_per_byte"`
		}
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Bulk) != 1 {
		return figures{}, fmt.Errorf("sshpace's report of %s: %v", c, err)
	}
	return figures{report.Bulk[0].Client.Value, report.Bulk[0].Throughput.Value}, nil
}

// loop feeds an ssh from /dev/zero and reads what it cost, and how fast it was.
func (s *server) loop(c cell) (figures, error) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return figures{}, err
	}
	defer zero.Close()
	cmd := s.ssh(c, "exec dd of=/dev/null bs=1M status=none")
	cmd.Stdin = zero
	if err := cmd.Start(); err != nil {
		return figures{}, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	cpu0, bytes0, err := look(cmd.Process.Pid)
	if err != nil {
		return figures{}, err
	}
	time.Sleep(2 * time.Second)
	cpu1, bytes1, err := look(cmd.Process.Pid)
	if err != nil || bytes1 <= bytes0 {
		return figures{}, fmt.Errorf("no bytes moved under %s: %v", c, err)
	}
	return figures{(cpu1 - cpu0) / (bytes1 - bytes0), (bytes1 - bytes0) / time.Since(began).Seconds()}, nil
}

// look reads time on CPU (ns) and bytes read by a process.
func look(pid int) (cpu, bytes float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, 0, err
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return 0, 0, err
	}
	cpu, err = strconv.ParseFloat(strings.Fields(string(stat))[0], 64)
	if err != nil {
		return 0, 0, err
	}
	bytes, err = strconv.ParseFloat(strings.Fields(string(io))[1], 64)
	return cpu, bytes, err
}

// server is an ordinary sshd on loopback.
type server struct {
	dir, port, user string
	daemon          *exec.Cmd
}

func newServer() (*server, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "agree")
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"host", "user"} {
		if err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run(); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{dir: dir, port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port), user: me.Username}
	l.Close()
	config := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\nPidFile none\nUsePAM no\nStrictModes no\nSetEnv HOME=%s\nCiphers %s\nMACs %s\n",
		s.port, dir, dir, dir, strings.Join(query("cipher"), ","), strings.Join(query("mac"), ","))
	if err := os.WriteFile(filepath.Join(dir, "config"), []byte(config), 0o600); err != nil {
		return nil, err
	}
	s.daemon = exec.Command("/usr/sbin/sshd", "-D", "-f", filepath.Join(dir, "config"))
	if err := s.daemon.Start(); err != nil {
		return nil, err
	}
	time.Sleep(300 * time.Millisecond)
	return s, nil
}

func (s *server) ssh(c cell, remote string) *exec.Cmd {
	argv := []string{"-F", "/dev/null", "-p", s.port, "-l", s.user, "-i", filepath.Join(s.dir, "user"), "-o", "IdentitiesOnly=yes",
		"-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + filepath.Join(s.dir, "known"),
		"-o", "LogLevel=ERROR", "-o", "KexAlgorithms=curve25519-sha256", "-o", "Ciphers=" + c.cipher}
	if c.mac != "" {
		argv = append(argv, "-o", "MACs="+c.mac)
	}
	return exec.Command("ssh", append(argv, "127.0.0.1", remote)...)
}

func (s *server) close() {
	_ = s.daemon.Process.Kill()
	_ = s.daemon.Wait()
	os.RemoveAll(s.dir)
}
