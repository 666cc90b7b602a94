package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"sshpace/crosscheck/daemon"
)

const (
	settling = 150 * time.Millisecond
	measured = 500 * time.Millisecond
)

// sinks are the processes that read from sshd.
var sinks = map[string]string{
	"cat": "cat >/dev/null",
	"splice": `python3 -c "import fcntl, os, time
fcntl.fcntl(0, fcntl.F_SETPIPE_SZ, 1 << 20)
null = os.open(os.devnull, os.O_WRONLY)
while os.splice(0, null, 1 << 20): time.sleep(3e-4)"`,
}

// transfer holds the measurements of one transfer.
type transfer struct {
	Round     int  `json:"round"`
	Place     int  `json:"place"` // in the round
	Reference bool `json:"reference,omitempty"`
	cell
	Began       time.Time     `json:"began"`
	Wall        time.Duration `json:"wall_ns"`
	ClientCPU   float64       `json:"client_cpu_ns"` // of ssh
	ClientBytes float64       `json:"client_bytes"`  // that ssh read
	ServerCPU   float64       `json:"server_cpu_ns"` // of sshd
	ServerBytes float64       `json:"server_bytes"`  // that sshd wrote
	SinkBytes   float64       `json:"sink_bytes"`    // that cat read
	Others      float64       `json:"others_cpu_ns"` // of all other programs, to 10 ms
	Stolen      float64       `json:"stolen_ns"`     // by other guests of the machine, of all cores, likewise
}

// transfer opens a connection, lets data flow, and looks twice.
func (s *server) transfer(c cell) (t transfer, err error) {
	data, end, err := s.source()
	if err != nil {
		return t, err
	}
	defer end()
	// cat takes the place of the shell, whose number is cat's then; the shell's parent is sshd.
	ssh := s.command(c, `exec sh -c 'echo $$ $PPID; exec `+sinks[s.sink]+`'`)
	var errs bytes.Buffer
	ssh.Stdin, ssh.Stderr = data, &errs
	out, err := ssh.StdoutPipe()
	if err != nil {
		return t, err
	}
	if err := ssh.Start(); err != nil {
		return t, err
	}
	var sink, daemon int
	_, err = fmt.Fscan(bufio.NewReader(out), &sink, &daemon)
	if err == nil {
		time.Sleep(settling)
		t, err = between(processes{ssh.Process.Pid, daemon, sink, s.sink == "splice"})
		t.cell = c
	}
	_ = ssh.Process.Kill()
	_ = ssh.Wait()
	if err != nil {
		return t, fmt.Errorf("%w\n%s", err, errs.Bytes())
	}
	return t, gone(daemon)
}

// source is the input of ssh, and the function that ends it.
func (s *server) source() (*os.File, func(), error) {
	if s.data != "pipe" {
		f, err := os.Open(s.file)
		return f, func() { f.Close() }, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	cat := exec.Command("cat", s.file)
	cat.Stdout = w
	if err := cat.Start(); err != nil {
		r.Close()
		return nil, nil, err
	}
	return r, func() { r.Close(); _ = cat.Process.Kill(); _ = cat.Wait() }, nil
}

// processes are those that a transfer passes through.
type processes struct {
	client, server, sink int
	splices              bool // the sink
}

// between returns the transfer within the time measured, from now.
func between(p processes) (t transfer, err error) {
	t.Began = time.Now()
	before, err := p.look()
	if err != nil {
		return t, err
	}
	time.Sleep(measured)
	after, err := p.look()
	if err != nil {
		return t, err
	}
	t.Wall = after.at.Sub(before.at)
	t.ClientCPU, t.ClientBytes = after.client.cpu-before.client.cpu, after.client.read-before.client.read
	t.ServerCPU, t.ServerBytes = after.server.cpu-before.server.cpu, after.server.written-before.server.written
	if t.SinkBytes = after.sink.read - before.sink.read; p.splices { // which is not counted
		t.SinkBytes = t.ServerBytes
	}
	t.Others = after.busy - before.busy - t.ClientCPU - t.ServerCPU - (after.sink.cpu - before.sink.cpu)
	t.Stolen = after.stolen - before.stolen
	if min(t.ClientCPU, t.ClientBytes, t.ServerCPU, t.ServerBytes, t.SinkBytes) <= 0 {
		return t, fmt.Errorf("no data moved")
	}
	return t, nil
}

// counters are what the kernel has counted of the processes.
type counters struct {
	client, server, sink counter
	at                   time.Time // of the look at the sink
	busy, stolen         float64   // ns of all cores
}

func (p processes) look() (c counters, err error) {
	if c.client, err = look(p.client); err != nil {
		return c, err
	}
	if c.server, err = look(p.server); err != nil {
		return c, err
	}
	c.at = time.Now()
	if c.sink, err = look(p.sink); err != nil {
		return c, err
	}
	c.busy, c.stolen, err = cores()
	return c, err
}

// counter is time on CPU in ns, and bytes read and written.
type counter struct{ cpu, read, written float64 }

func look(pid int) (c counter, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return c, err
	}
	io, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	if err != nil {
		return c, err
	}
	if _, err := fmt.Sscan(string(stat), &c.cpu); err != nil {
		return c, err
	}
	_, err = fmt.Sscanf(string(io), "rchar: %g\nwchar: %g", &c.read, &c.written)
	return c, err
}

// cores are ns that all cores were busy, and that other guests took, see proc(5).
func cores() (busy, stolen float64, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, err
	}
	var user, nice, system, idle, iowait, irq, softirq, steal float64
	_, err = fmt.Sscan(strings.TrimPrefix(string(text), "cpu "), &user, &nice, &system, &idle, &iowait, &irq, &softirq, &steal)
	const tick = 1e7
	return (user + nice + system + irq + softirq) * tick, steal * tick, err
}

// gone waits until the server's process of a connection has ended: the next transfer has the
// machine alone.
func gone(pid int) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); os.IsNotExist(err) {
			return nil
		}
	}
	return fmt.Errorf("process %d of sshd does not end", pid)
}

// server is an ordinary sshd on loopback.
type server struct {
	options
	dir, user string
	file      string   // of the data
	random    *os.File // of which it is another name, with -data random
	daemon    *daemon.Sshd
}

func newServer(o options, dir string) (*server, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	s := &server{options: o, dir: dir, user: me.Username, file: "/dev/zero"}
	if o.data == "random" {
		if s.random, err = randomFile(); err != nil {
			return nil, err
		}
		s.file = fmt.Sprintf("/proc/self/fd/%d", s.random.Fd())
	}
	if err := s.start(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// randomFile is long enough for a transfer of 1.6 GB/s. Reading it costs what reading a cached file
// costs; /dev/urandom would cost ssh more than most ciphers. It has no name, so that nothing is
// left of it.
func randomFile() (*os.File, error) {
	f, err := os.CreateTemp("/dev/shm", "agree")
	if err != nil {
		return nil, err
	}
	os.Remove(f.Name())
	if _, err := io.CopyN(f, rand.NewChaCha8([32]byte{}), 1<<30); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// start starts sshd with every cipher and MAC.
func (s *server) start() error {
	ciphers, err := exec.Command(s.ssh, "-Q", "cipher").Output()
	if err != nil {
		return err
	}
	macs, err := exec.Command(s.ssh, "-Q", "mac").Output()
	if err != nil {
		return err
	}
	s.daemon, err = daemon.Start([]string{s.sshd}, s.dir, "127.0.0.1", "Ciphers "+list(ciphers), "MACs "+list(macs))
	return err
}

func list(lines []byte) string { return strings.Join(strings.Fields(string(lines)), ",") }

func (s *server) command(c cell, remote string) *exec.Cmd {
	argv := []string{"-F", "/dev/null", "-p", s.daemon.Port, "-l", s.user, "-i", s.daemon.Key, "-o", "IdentitiesOnly=yes",
		"-o", "IdentityAgent=none", "-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + filepath.Join(s.dir, "known"),
		"-o", "LogLevel=ERROR", "-o", "KexAlgorithms=curve25519-sha256", "-o", "Ciphers=" + c.Cipher}
	if c.MAC != "" {
		argv = append(argv, "-o", "MACs="+c.MAC)
	}
	return exec.Command(s.ssh, append(argv, "127.0.0.1", remote)...)
}

func (s *server) close() {
	if s.daemon != nil {
		s.daemon.Close()
	}
	s.random.Close() // nil is an error that does not matter
}
