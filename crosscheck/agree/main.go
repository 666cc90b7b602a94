// Command agree checks sshpace's numbers against loops that share no code with
// it: client cost from /proc/PID/schedstat and throughput of an ssh through which zeros go
// for some seconds, to be read by a dd in large blocks. It reads a pipe, as from tar: from /dev/zero
// ssh reads up to a tenth cheaper. The loops of all cells run in turn with rankings, so that both
// see the same machine.
//
//	go run ./crosscheck/agree [-cells 10] [-turns 5] [-alone] [-match EXPRESSION] [-seed 1] [-sshpace ./sshpace]
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
	turns := flag.Int("turns", 5, "of the loops and of sshpace, one after the other; more are more precise")
	alone := flag.Bool("alone", false, "let sshpace measure each cell by itself, for 4 s, not all of them in a ranking of a minute")
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
	chosen := pick(*cells, only, rand.New(rand.NewPCG(*seed, 0)))
	if *alone {
		err = s.compareAlone(*program, *turns, chosen)
	} else {
		err = s.compareRankings(*program, *turns, chosen)
	}
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

// comparison prints client cost and throughput of cells by both ways, and how far
// the loop is from itself: no difference below that means anything.
type comparison struct{ costs, rates []float64 } // differences in percent

func (*comparison) head() {
	fmt.Printf("%-46s %8s %8s %7s %8s %8s %7s  %s\n", "", "ns/B", "sshpace", "differ", "MB/s", "sshpace", "differ", "last loop to first")
}

func (r *comparison) row(c cell, loops, ours []figures) {
	loop, mine := middle(loops), middle(ours)
	cost, rate := 100*math.Log(mine.cost/loop.cost), 100*math.Log(mine.rate/loop.rate)
	r.costs, r.rates = append(r.costs, cost), append(r.rates, rate)
	first, last := loops[0], loops[len(loops)-1]
	fmt.Printf("%-46s %8.3f %8.3f %+6.1f%% %8.0f %8.0f %+6.1f%%  %+.1f%%, %+.1f%%\n", c, loop.cost, mine.cost, cost, loop.rate/1e6, mine.rate/1e6, rate, 100*math.Log(last.cost/first.cost), 100*math.Log(last.rate/first.rate))
}

func (r *comparison) sum() {
	say("cost", r.costs)
	say("throughput", r.rates)
}

// compareAlone has the loop of a cell take turns with a short measurement of that cell, the loop
// first and last.
func (s *server) compareAlone(program string, turns int, cells []cell) error {
	var out comparison
	out.head()
	for _, c := range cells {
		var loops, ours []figures
		for turn := range turns {
			f, err := figures{}, error(nil)
			if turn%2 == 0 {
				f, err = s.loop(c)
				loops = append(loops, f)
			} else {
				f, err = measureOne(program, c)
				ours = append(ours, f)
			}
			if err != nil {
				return err
			}
		}
		out.row(c, loops, ours)
	}
	out.sum()
	return nil
}

// compareRankings has the loops of all cells take turns with rankings, the loops first and last.
func (s *server) compareRankings(program string, turns int, cells []cell) error {
	loops, ours := map[cell][]figures{}, map[cell][]figures{}
	for turn := range turns {
		if turn%2 == 1 {
			ranking, err := measure(program, "60s")
			if err != nil {
				return err
			}
			for _, c := range cells {
				ours[c] = append(ours[c], ranking[c])
			}
			continue
		}
		for _, c := range cells {
			f, err := s.loop(c)
			if err != nil {
				return err
			}
			loops[c] = append(loops[c], f)
		}
	}
	var out comparison
	out.head()
	for _, c := range cells {
		out.row(c, loops[c], ours[c])
	}
	out.sum()
	return nil
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

// measureOne asks sshpace for one cell.
func measureOne(program string, c cell) (figures, error) {
	args := []string{"--cipher", c.cipher}
	if c.mac != "" {
		args = append(args, "--mac", c.mac)
	}
	all, err := measure(program, "4s", args...)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("sshpace reports %d cells of %s", len(all), c)
	}
	return all[c], err
}

// measure asks sshpace for a ranking.
func measure(program, budget string, args ...string) (map[cell]figures, error) {
	result := filepath.Join(os.TempDir(), fmt.Sprintf("agree-%d.jsonl", time.Now().UnixNano()))
	defer os.Remove(result)
	args = append([]string{"bench", "--json", "--budget", budget, "--kex", "curve25519-sha256", "--out", result}, args...)
	text, err := exec.Command(program, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s %v: %w", program, args, err)
	}
	var report struct {
		Bulk []struct {
			Cipher, MAC string
			Throughput  struct{ Value float64 } `json:"throughput_bytes_per_s"`
			Client      struct{ Value float64 } `json:"client_ns_per_byte"`
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("sshpace's report: %w", err)
	}
	out := map[cell]figures{}
	for _, row := range report.Bulk {
		out[cell{row.Cipher, row.MAC}] = figures{row.Client.Value, row.Throughput.Value}
	}
	return out, nil
}

// loop keeps zeros going through an ssh and reads what it cost, and how fast it was.
func (s *server) loop(c cell) (figures, error) {
	t, err := s.transfer(c)
	if err != nil {
		return figures{}, fmt.Errorf("a transfer with %s: %w", c, err)
	}
	defer t.end()
	time.Sleep(500 * time.Millisecond)
	began := time.Now()
	cpu0, bytes0, err := look(t.ssh.Process.Pid)
	if err != nil {
		return figures{}, err
	}
	time.Sleep(2 * time.Second)
	cpu1, bytes1, err := look(t.ssh.Process.Pid)
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
