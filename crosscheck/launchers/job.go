//go:build linux

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/relay"
)

const (
	direct = "direct" // name of a client that is its own launcher
	pool   = "web"
)

// job is a run on a fleet: a hub, launchers and a client, each with a home directory of its own.
type job struct {
	program, dir string
	fleet        *fleet
	hosts        []string
	hub, client  *member
	launchers    []*member
	listen, work []string                        // flags of the hub and of launchers
	way          func(*member) ([]string, error) // returns the flags by which one reaches the hub

	starts chan func() // by the thread with which all members end

	mu sync.Mutex
	id string
}

// member is a part of a job, and its way to the hub.
type member struct {
	name        string
	args, reach []string // reach: how it finds the hub
	*process

	mu    sync.Mutex // one thing is done to it at a time
	port  int        // of relay
	relay *relay.Relay
}

// process is a program that runs.
type process struct {
	*exec.Cmd
	began time.Time
	told  told // on standard output, of one that writes records
	err   error
	ended chan struct{} // closed
}

// newJob makes a job on n hosts, of which nothing runs yet. The caller closes it.
func newJob(program, parent string, n int, f *fleet) (j *job, err error) {
	j = &job{program: program, fleet: f, starts: make(chan func())}
	j.way = func(*member) ([]string, error) { return []string{"--hub", j.path("hub")}, nil }
	for i := range n {
		j.hosts = append(j.hosts, fmt.Sprintf("127.0.%d.%d", i/250+1, i%250+1))
	}
	go func() {
		runtime.LockOSThread() // SIGKILL comes when the thread ends
		for start := range j.starts {
			start()
		}
	}()
	if j.dir, err = os.MkdirTemp(parent, "job-"); err != nil {
		return nil, err
	}
	if err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", j.path("key")).Run(); err != nil {
		return nil, fmt.Errorf("ssh-keygen: %w", err)
	}
	err = os.WriteFile(j.path("hosts"), []byte(strings.Join(j.hosts, "\n")), 0o600)
	if err == nil {
		err = os.WriteFile(j.path("known"), fmt.Appendf(nil, "[127.0.*]:%d %s\n", f.port, f.key), 0o600)
	}
	return j, err
}

func (j *job) path(names ...string) string {
	return filepath.Join(append([]string{j.dir}, names...)...)
}

// close ends all that runs and removes all files.
func (j *job) close() {
	j.fleet.listener.Close()
	for _, m := range j.members() {
		if m.process != nil {
			m.kill()
		}
		if m.relay != nil {
			m.relay.Close()
		}
	}
	close(j.starts)
	_ = unix.Unmount(j.path("hub"), 0)
	os.RemoveAll(j.dir)
}

func (j *job) members() (all []*member) {
	for _, m := range append([]*member{j.hub, j.client}, j.launchers...) {
		if m != nil {
			all = append(all, m)
		}
	}
	return all
}

// begin starts a member, which logs in to hosts under its name. What it says is added to its log.
func (j *job) begin(m *member) error {
	said, err := os.OpenFile(j.path(m.name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	p := &process{Cmd: exec.Command(j.program, m.args...), began: time.Now(), ended: make(chan struct{})}
	p.Stderr = said
	p.Env = j.environment(m)
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	in, out := io.Pipe()
	var reading sync.WaitGroup
	if m == j.client {
		p.Stdout = out
		reading.Go(func() {
			p.told, p.err = read(in, func(id string) { j.called(id) })
			in.CloseWithError(p.err)
		})
	}
	started := make(chan error)
	j.starts <- func() { started <- p.Start() }
	if err := <-started; err != nil {
		return err
	}
	m.process = p
	go func() {
		_ = p.Wait()
		out.Close()
		reading.Wait()
		close(p.ended)
	}()
	return nil
}

func (j *job) environment(m *member) []string {
	return []string{"HOME=" + j.path(m.name), "PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8"}
}

// called notes the name of the job, if it has one now, and returns it.
func (j *job) called(id string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.id = cmp.Or(id, j.id)
	return j.id
}

// kill ends a process at once, and waits for that.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// most is the time that a job may take, with all that is done to it.
const most = 2 * time.Minute

// ends waits until the client has ended by itself.
func (j *job) ends() error {
	select {
	case <-j.client.ended:
		return j.client.err
	case <-time.After(most):
		return fmt.Errorf("the client has not ended after %v", most)
	}
}

// start starts a hub, so many launchers and a client that runs a command with these flags; without
// launchers the client is its own.
func (j *job) start(launchers int, how ...string) error {
	j.client = &member{name: direct, args: append([]string{"run", "--json", "--hosts-file", j.path("hosts")}, how...)}
	if launchers > 0 {
		j.client.name = "client"
		if err := j.startHub(); err != nil {
			return err
		}
	}
	for i := range launchers {
		m := &member{name: fmt.Sprintf("l%d", i+1)}
		m.args = append(append([]string{"work", "--pool", pool, "--name", m.name}, j.work...), "-F", j.path(m.name, "ssh_config"))
		j.launchers = append(j.launchers, m)
	}
	if launchers > 0 {
		j.client.args = append(j.client.args, "--pool", pool, "--sign-key", j.path("key"))
	} else {
		j.client.args = append(j.client.args, "-F", j.path(direct, "ssh_config"))
	}
	for _, m := range append(j.launchers, j.client) {
		if err := j.equip(m); err != nil {
			return err
		}
		m.args = append(m.args, m.reach...)
		if m == j.client {
			m.args = append(m.args, "--", "true")
		}
		if err := j.begin(m); err != nil {
			return err
		}
	}
	return nil
}

// startHub starts the hub, and waits until it is ready.
func (j *job) startHub() error {
	j.hub = &member{name: "hub", args: append([]string{"hub", "--dir", j.path("hub")}, j.listen...)}
	if err := os.Mkdir(j.path("hub"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := j.begin(j.hub); err != nil {
		return err
	}
	for !strings.Contains(j.words(j.hub), "is ready") {
		select {
		case <-j.hub.ended:
			return fmt.Errorf("the hub: %s", j.words(j.hub))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// words are those of a member.
func (j *job) words(m *member) string {
	said, _ := os.ReadFile(j.path(m.name + ".log"))
	return m.name + " says: " + string(said)
}

// equip gives a member an ssh_config, the signers that it trusts, and its way to the hub.
func (j *job) equip(m *member) (err error) {
	if err := os.MkdirAll(j.path(m.name, ".config", "sshpace"), 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf("Port %d\nUser %s\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\n"+
		"StrictHostKeyChecking yes\nKexAlgorithms curve25519-sha256\nCiphers aes128-gcm@openssh.com\n", j.fleet.port, m.name, j.path("key"), j.path("known"))
	public, err := os.ReadFile(j.path("key.pub"))
	if err != nil {
		return err
	}
	if j.hub != nil {
		m.reach, err = j.way(m)
	}
	return errors.Join(err, os.WriteFile(j.path(m.name, "ssh_config"), []byte(config), 0o600),
		os.WriteFile(j.path(m.name, ".config", "sshpace", "allowed_signers"), append([]byte("tester "), public...), 0o600))
}
