// Command agree checks sshpace's numbers against loops that share no code with
// it: a client cost from /proc/PID/schedstat of an ssh that is fed from
// /dev/zero, and the throughput of `dd | ssh host 'cat >/dev/null'`. Each runs
// in turn with sshpace on the same cell, so that both see the same machine.
//
//	go run ./crosscheck/agree [-cells 10] [-seed 1] [-sshpace ./sshpace]
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
	"slices"
	"strconv"
	"strings"
	"time"
)

func main() {
	log.SetFlags(0)
	cells := flag.Int("cells", 10, "random cells to compare the cost of")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "which cells")
	program := flag.String("sshpace", "./sshpace", "the program to check")
	flag.Parse()
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	err = s.compare(*program, *cells, rand.New(rand.NewPCG(*seed, 0)))
	s.close()
	if err != nil {
		log.Fatal(err)
	}
}

func (s *server) compare(program string, cells int, random *rand.Rand) error {
	if err := s.compareCost(program, cells, random); err != nil {
		return err
	}
	for _, cipher := range []string{"aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"} {
		if err := s.compareThroughput(program, cipher); err != nil {
			return err
		}
	}
	return nil
}

// cell is one cipher with a MAC.
type cell struct{ cipher, mac string }

func (c cell) String() string { return strings.TrimSpace(c.cipher + " " + c.mac) }

// pick draws distinct cells from the installed algorithms.
func pick(n int, random *rand.Rand) []cell {
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

// compareCost prints the client cost of random cells by both ways.
func (s *server) compareCost(program string, n int, random *rand.Rand) error {
	fmt.Printf("%-52s %10s %10s %7s\n", "client cost, ns/B", "loop", "sshpace", "differ")
	var differences []float64
	for _, c := range pick(n, random) {
		before, err := s.loopCost(c)
		if err != nil {
			return err
		}
		_, ours, err := measure(program, c)
		if err != nil {
			return err
		}
		after, err := s.loopCost(c)
		if err != nil {
			return err
		}
		loop := (before + after) / 2
		difference := 100 * (ours/loop - 1)
		differences = append(differences, math.Abs(difference))
		fmt.Printf("%-52s %10.3f %10.3f %+6.1f%%\n", c, loop, ours, difference)
	}
	slices.Sort(differences)
	fmt.Printf("median difference %.1f %%, largest %.1f %%\n\n", median(differences), differences[len(differences)-1])
	return nil
}

func median(sorted []float64) float64 {
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// measure asks sshpace for one cell.
func measure(program string, c cell) (throughput, cost float64, err error) {
	out := filepath.Join(os.TempDir(), fmt.Sprintf("agree-%d.jsonl", time.Now().UnixNano()))
	defer os.Remove(out)
	args := []string{"bench", "--json", "--rounds", "4", "--cipher", c.cipher, "--kex", "curve25519-sha256", "--out", out}
	if c.mac != "" {
		args = append(args, "--mac", c.mac)
	}
	text, err := exec.Command(program, args...).Output()
	if err != nil {
		return 0, 0, fmt.Errorf("%s %v: %w", program, args, err)
	}
	var report struct {
		Bulk []struct {
			Throughput struct{ Value float64 } `json:"throughput_bytes_per_s"`
			Client     struct{ Value float64 } `json:"client_ns_per_byte"`
		}
	}
	if err := json.Unmarshal(text, &report); err != nil || len(report.Bulk) != 1 {
		return 0, 0, fmt.Errorf("sshpace's report of %s: %v", c, err)
	}
	return report.Bulk[0].Throughput.Value, report.Bulk[0].Client.Value, nil
}

// loopCost feeds an ssh from /dev/zero and reads what it cost per byte.
func (s *server) loopCost(c cell) (float64, error) {
	zero, err := os.Open("/dev/zero")
	if err != nil {
		return 0, err
	}
	defer zero.Close()
	cmd := s.ssh(c, "cat >/dev/null")
	cmd.Stdin = zero
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	time.Sleep(500 * time.Millisecond)
	cpu0, bytes0, err := look(cmd.Process.Pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(1200 * time.Millisecond)
	cpu1, bytes1, err := look(cmd.Process.Pid)
	if err != nil || bytes1 <= bytes0 {
		return 0, fmt.Errorf("no bytes moved under %s: %v", c, err)
	}
	return (cpu1 - cpu0) / (bytes1 - bytes0), nil
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

// compareThroughput runs dd | ssh | cat and sshpace in turn.
func (s *server) compareThroughput(program, cipher string) error {
	var dd, ours []float64
	c := cell{cipher, ""}
	for range 3 {
		rate, err := s.ddRate(c)
		if err != nil {
			return err
		}
		dd = append(dd, rate)
		throughput, _, err := measure(program, c)
		if err != nil {
			return err
		}
		ours = append(ours, throughput/1e6)
	}
	slices.Sort(dd)
	slices.Sort(ours)
	fmt.Printf("%-32s dd|ssh|cat %6.0f MB/s   sshpace %6.0f MB/s   ratio %.2f\n", cipher, median(dd), median(ours), median(ours)/median(dd))
	return nil
}

// ddRate is what the old loops measured, without their login: dd's own figure
// over 3 GB.
func (s *server) ddRate(c cell) (float64, error) {
	line := "dd if=/dev/zero bs=1M count=3000 2>dd.log | " + shellQuote(s.ssh(c, "cat >/dev/null").Args)
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "dd.log"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text)) // ... copied, 3.1 s, 1.0 GB/s
	for i, field := range fields {
		if field == "s," {
			seconds, err := strconv.ParseFloat(fields[i-1], 64)
			return 3000 * 1.048576 / seconds, err
		}
	}
	return 0, fmt.Errorf("dd said %q", text)
}

func shellQuote(argv []string) string {
	var words []string
	for _, arg := range argv {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
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
