// Command ways checks `sshpace bench --mode` against loops that share no code with
// it: a pipe, a forwarded port and scp to an sshd of its own, timed from the start
// of a program to its end, for one byte and for many. Each takes its turn with
// sshpace, so that both see the same machine.
//
//	go run ./crosscheck/ways [-rounds 5] [-size 256] [-sshpace ./sshpace]
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const cipher = "aes128-gcm@openssh.com"

func main() {
	log.SetFlags(0)
	rounds := flag.Int("rounds", 5, "of both, in turn")
	size := flag.Int("size", 256, "MiB of a long run")
	program := flag.String("sshpace", "./sshpace", "the program to check")
	flag.Parse()
	l, err := newLab(*size << 20)
	if err == nil {
		err = l.compare(*program, *rounds)
		l.close()
	}
	if err != nil {
		log.Fatal(err)
	}
}

// lab is a folder in memory with keys, two files, and an sshd.
type lab struct {
	dir, port, me string
	size          int
	sshd          *exec.Cmd
}

func newLab(size int) (*lab, error) {
	dir, err := os.MkdirTemp("/dev/shm", "crosscheck-")
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, me: me.Username, size: size, port: strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)}
	listener.Close()
	for _, key := range []string{"host", "user"} {
		if err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).Run(); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/user.pub\nStrictModes no\nPidFile none\nUsePAM no\nSetEnv HOME=%s\nSubsystem sftp internal-sftp\nMaxStartups 100\n", l.port, dir, dir, dir)
	random := make([]byte, 1<<20)
	urandom, err := os.Open("/dev/urandom")
	if err == nil {
		_, err = io.ReadFull(urandom, random)
	}
	if err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"conf": []byte(config), "short": random[:1], "long": bytes.Repeat(random, size>>20)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	l.sshd = exec.Command("/usr/sbin/sshd", "-D", "-f", filepath.Join(dir, "conf"))
	if err := l.sshd.Start(); err != nil {
		return nil, err
	}
	for range 100 {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+l.port); err == nil {
			conn.Close()
			return l, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil, fmt.Errorf("sshd does not answer")
}

func (l *lab) close() {
	_ = l.sshd.Process.Kill()
	_ = l.sshd.Wait()
	_ = os.RemoveAll(l.dir)
}

// options lead ssh and scp to the lab; scp spells the port its own way.
func (l *lab) options(port string) []string {
	return []string{
		"-F", "/dev/null", port, l.port, "-i", l.dir + "/user", "-o", "User=" + l.me, "-o", "StrictHostKeyChecking=no",
		"-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-o", "Ciphers=" + cipher, "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
	}
}

// run times one program that reads a file.
func run(stdin string, argv ...string) (float64, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := os.Open(stdin)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	cmd.Stdin = in
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w: %s", argv[0], err, out)
	}
	return time.Since(start).Seconds(), nil
}

func (l *lab) pipe(file string) (float64, error) {
	return run(file, append(append([]string{"ssh"}, l.options("-p")...), "127.0.0.1", "cat >/dev/null")...)
}

func (l *lab) scp(file string) (float64, error) {
	defer os.Remove(l.dir + "/to")
	return run("/dev/null", append(append([]string{"scp", "-q"}, l.options("-P")...), file, "127.0.0.1:"+l.dir+"/to")...)
}

// forward times from the start of ssh until all of the file has come out of the
// forwarded port's other end.
func (l *lab) forward(file string) (float64, error) {
	far, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer far.Close()
	near, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address := near.Addr().String()
	near.Close()
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	cmd := exec.Command("ssh", append(l.options("-p"), "-N", "-L", address+":"+far.Addr().String(), "127.0.0.1")...)
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	var conn net.Conn
	for conn, err = net.Dial("tcp4", address); err != nil; conn, err = net.Dial("tcp4", address) {
		if time.Since(start) > 20*time.Second {
			return 0, err
		}
		time.Sleep(time.Millisecond)
	}
	defer conn.Close()
	go func() {
		_, _ = conn.Write(text)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	out, err := far.Accept()
	if err != nil {
		return 0, err
	}
	defer out.Close()
	buffer, got := make([]byte, 1<<20), 0
	for {
		n, err := out.Read(buffer)
		if got += n; err != nil {
			break
		}
	}
	if got != len(text) {
		return 0, fmt.Errorf("%d of %d bytes came out", got, len(text))
	}
	return time.Since(start).Seconds(), nil
}

// modes are sshpace's names and our loops.
var modes = []struct {
	name string
	loop func(l *lab, file string) (float64, error)
}{{"pipe", (*lab).pipe}, {"forward -L", (*lab).forward}, {"scp", (*lab).scp}}

func (l *lab) compare(program string, rounds int) error {
	ours, theirs := map[string][]float64{}, map[string][]float64{}
	for range rounds {
		if err := l.sshpace(program, theirs); err != nil {
			return err
		}
		for _, m := range modes {
			short, err := m.loop(l, l.dir+"/short")
			if err != nil {
				return err
			}
			long, err := m.loop(l, l.dir+"/long")
			if err != nil {
				return err
			}
			ours[m.name] = append(ours[m.name], float64(l.size)/(long-short))
		}
	}
	fmt.Printf("%-12s %10s %10s %12s\n", "MB/s", "loop", "sshpace", "difference")
	worst := 0.0
	for _, m := range modes {
		a, b := median(ours[m.name]), median(theirs[m.name])
		fmt.Printf("%-12s %10.0f %10.0f %+11.1f%%\n", m.name, a/1e6, b/1e6, 100*(b/a-1))
		worst = max(worst, math.Abs(b/a-1))
	}
	fmt.Printf("largest difference of medians %.1f %%\n", 100*worst)
	return nil
}

// sshpace measures the same once and adds what it says.
func (l *lab) sshpace(program string, rates map[string][]float64) error {
	out := filepath.Join(l.dir, "result.jsonl")
	defer os.Remove(out)
	text, err := exec.Command(program, "bench", "--mode", "pipe,scp,forward", "--cipher", cipher, "--rounds", "1",
		"--size", strconv.Itoa(l.size), "--json", "--out", out).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	var report struct {
		Ways []struct {
			Mode string `json:"mode"`
			Rate struct {
				Value float64 `json:"value"`
			} `json:"throughput_bytes_per_s"`
		} `json:"ways"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return err
	}
	for _, w := range report.Ways {
		if w.Rate.Value > 0 {
			rates[w.Mode] = append(rates[w.Mode], w.Rate.Value)
		}
	}
	return nil
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
