//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"time"
)

// lab is a private sshd on all loopback addresses, and client files that reach
// it.
type lab struct {
	dir                     string
	port                    int
	hosts                   []string
	user, userKey           string // who may log in: the one who runs this
	config, known           string // ssh_config and known_hosts with the right key
	wrongConfig, wrongKnown string // the same with a wrong one
	load                    load   // what is copied, none without -copy
	startups                string // MaxStartups, where lost hosts are counted
	sshd                    *exec.Cmd
}

// startLab makes keys and files and starts sshd. The caller stops it.
func startLab(ctx context.Context, p params) (_ *lab, err error) {
	dir, err := os.MkdirTemp(p.dir, "fanout-")
	if err != nil {
		return nil, err
	}
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	l := &lab{dir: dir, user: me.Username, startups: p.startups}
	defer func() {
		if err != nil {
			l.stop()
		}
	}()
	for i := range p.n {
		l.hosts = append(l.hosts, fmt.Sprintf("127.0.%d.%d", i/250+1, i%250+1))
	}
	for _, name := range []string{"host", "wrong", "user"} {
		if err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", l.path(name)).Run(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w", err)
		}
	}
	l.userKey = l.path("user")
	if l.port, err = freePort(); err != nil {
		return nil, err
	}
	if err := l.files(p.knownBytes); err != nil {
		return nil, err
	}
	if p.copied != "" {
		if err := l.prepareCopy(p.copied); err != nil {
			return nil, err
		}
	}
	return l, l.start()
}

// prepareCopy makes what is copied, and a folder for every host.
func (l *lab) prepareCopy(what string) (err error) {
	if l.load, err = parseLoad(what); err != nil {
		return err
	}
	if err := l.load.make(l.path("source")); err != nil {
		return err
	}
	if err := os.WriteFile(l.path("session"), []byte(inFolder), 0o755); err != nil {
		return err
	}
	config, err := os.ReadFile(l.path("sshd_config"))
	if err != nil {
		return err
	}
	return l.write("sshd_config", string(config)+"Subsystem sftp "+sftpServer()+"\nForceCommand "+l.path("session")+"\n")
}

// sftpServer is where Debian, or others, have it.
func sftpServer() string {
	for _, path := range []string{"/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/libexec/sftp-server", "/usr/lib/ssh/sftp-server"} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return "sftp-server"
}

// checked makes sure that a copy arrived, if there was one.
func (l *lab) checked(hosts []string) error {
	if l.load.files == 0 {
		return nil
	}
	return l.arrived(hosts)
}

// lost is on how many hosts no command has run since it was asked last.
func (l *lab) lost() (int, error) {
	noted, err := os.ReadFile(l.path("ran"))
	if err != nil && !os.IsNotExist(err) {
		return 0, err
	}
	return len(l.hosts) - bytes.Count(noted, []byte("\n")), os.WriteFile(l.path("ran"), nil, 0o600)
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) stop() {
	if l.sshd != nil {
		l.sshd.Process.Kill()
		l.sshd.Wait()
	}
	os.RemoveAll(l.dir)
}

func (l *lab) files(knownBytes int) error {
	for _, kind := range []string{"host", "wrong"} {
		pub, err := os.ReadFile(l.path(kind + ".pub"))
		if err != nil {
			return err
		}
		key := strings.Join(strings.Fields(string(pub))[:2], " ")
		var known bytes.Buffer
		for i := 0; known.Len() < knownBytes-len(l.hosts)*len(key); i++ {
			fmt.Fprintf(&known, "other%d.example,10.9.%d.%d %s\n", i, i/250%250, i%250, key)
		}
		for _, h := range l.hosts {
			fmt.Fprintf(&known, "[%s]:%d %s\n", h, l.port, key)
		}
		config := fmt.Sprintf("Host *\n Port %d\n User %s\n IdentityFile %s\n IdentitiesOnly yes\n IdentityAgent none\n"+
			" UserKnownHostsFile %s\n GlobalKnownHostsFile none\n StrictHostKeyChecking yes\n KexAlgorithms curve25519-sha256\n",
			l.port, l.user, l.userKey, l.path(kind+".known"))
		if err := l.write(kind+".known", known.String()); err != nil {
			return err
		}
		if err := l.write(kind+".config", config); err != nil {
			return err
		}
	}
	l.config, l.known = l.path("host.config"), l.path("host.known")
	l.wrongConfig, l.wrongKnown = l.path("wrong.config"), l.path("wrong.known")
	if err := os.Mkdir(l.path("home"), 0o700); err != nil {
		return err
	}
	if err := l.write("ansible.cfg", ""); err != nil {
		return err
	}
	startups, noted := "1000", ""
	if l.startups != "" {
		startups, noted = l.startups, "ForceCommand echo >>"+l.path("ran")+"\n"
	}
	return l.write("sshd_config", fmt.Sprintf("Port %d\nListenAddress 0.0.0.0\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nUsePAM no\n"+
		"StrictModes no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n"+
		"MaxStartups %s\nLogLevel ERROR\nUseDNS no\nKexAlgorithms curve25519-sha256\nSetEnv HOME=%s\n%s",
		l.port, l.path("host"), l.path("user.pub"), startups, l.path("home"), noted))
}

func (l *lab) write(name, text string) error {
	return os.WriteFile(l.path(name), []byte(text), 0o600)
}

func (l *lab) start() (err error) {
	var said bytes.Buffer
	if l.sshd, err = reaper("/usr/sbin/sshd", "-D", "-e", "-f", l.path("sshd_config")); err != nil {
		return err
	}
	l.sshd.Stderr = &said
	if err := l.sshd.Start(); err != nil {
		l.sshd = nil
		return err
	}
	for range 300 {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", l.port))
		if err == nil {
			return c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("the server does not listen: %s", said.String())
}

func freePort() (int, error) {
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
